"""A TaskProlog for Slurm that applies a profile to every task of every job, without changes to the jobs.

Slurm interprets the lines `export`, `unset` and `print` of such a script's output, stderr included, and ends the task
where its exit code is not 0.
"""

from collections.abc import Sequence

from gputune.resources.printable import quoted

_TEXT = """#!/bin/bash
# For slurm.conf: TaskProlog=PATH of this file, on all nodes. Each task starts with what the profile recommends.
# A job opts out with: export GPUTUNE_DISABLE=1
# shellcheck disable=all  # quoted already
profile=@profile@
[ "$profile" = auto ] || [ -r "$profile" ] || exit 0

# Slurm reads stderr too, so it is dropped. An answer that broke off is not used.
if lines=$(@gputune@ apply --emit slurm-taskprolog "$profile" 2>/dev/null) && [ -n "$lines" ]; then
  printf '%s\\n' "$lines"
fi
exit 0
"""


def task_prolog(profile: str, gputune: Sequence[str]) -> str:
    """The script. `profile` is an absolute path or auto; `gputune` starts gputune without a PATH."""
    return _TEXT.replace("@gputune@", quoted(*gputune), 1).replace("@profile@", quoted(profile), 1)
