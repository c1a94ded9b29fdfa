"""Slurm's TaskProlog that applies a profile to every task of every job, without a change to the jobs.

Slurm reads what such a script prints, stderr too: only `export`, `unset` and `print` mean something, and an exit code other than 0
would end the task.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

_TEXT = """#!/bin/bash
# For slurm.conf: TaskProlog=PATH of this file, on all nodes. Each task starts with what the profile recommends.
# A job that is to stay as it is exports GPUTUNE_DISABLE=1.
# shellcheck disable=all  # it stands as it is meant
profile=@profile@
[ "$profile" = auto ] || [ -r "$profile" ] || exit 0

# Slurm would read stderr too, so that nothing of it may pass; and half an answer is none.
if lines=$(@gputune@ apply --emit slurm-taskprolog "$profile" 2>/dev/null) && [ -n "$lines" ]; then
  printf '%s\\n' "$lines"
fi
exit 0
"""


def task_prolog(profile: str, gputune: Sequence[str]) -> str:
    """The script. `profile` is an absolute path or auto; `gputune` the words that start it, without a PATH."""
    return _TEXT.replace("@gputune@", shlex.join(gputune), 1).replace("@profile@", shlex.quote(profile), 1)
