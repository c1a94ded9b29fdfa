"""Replacing this process by the command, so that exit code and signals are the command's own."""

import errno
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import NoReturn

from gputune.host.stderr import say


def launch(command: Sequence[str], environ: Mapping[str, str], strict: bool = False) -> NoReturn:
    """Replace this process by `command`, found on `environ`'s PATH; on failure print a line and exit 127 or 126.

    An environment that is larger than the kernel takes is replaced by the inherited one, with a line that says so; with
    `strict` that line is all, and the exit code 78.
    """
    from gputune_start import REFUSED, execute, inherited, not_executed  # not for a program with a file of that name

    try:
        execute(command, environ)
    except (OSError, ValueError) as error:
        given = inherited()
        if getattr(error, "errno", None) != errno.E2BIG or given == environ:
            sys.exit(not_executed(command, error))
    fault = "with the settings the environment is larger than the kernel takes"
    if strict:
        say(f"{fault}; without --strict the command runs unchanged")
        sys.exit(REFUSED)
    say(f"{fault}; running {command[0]} unchanged")
    try:
        execute(command, given)
    except (OSError, ValueError) as error:
        sys.exit(not_executed(command, error))


def disabled(environ: Mapping[str, str]) -> bool:
    return environ.get("GPUTUNE_DISABLE") == "1"


PYTHON = re.compile(r"python(\d+(\.\d+)?)?t?")
LAUNCHERS = frozenset({
    "torchrun", "accelerate", "accelerate-launch", "deepspeed", "fabric", "horovodrun", "jsrun", "mpiexec", "mpirun",
    "mpirun.mpich", "mpirun.openmpi", "orterun", "prun", "ray", "srun",
})  # fmt: skip
MODULES = frozenset({
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli", "deepspeed.launcher.runner",
})  # fmt: skip


def starts_ranks(command: Sequence[str]) -> bool:
    """Recognises a launcher by its name, also behind another program (`uv run torchrun`, `python bin/accelerate`), or
    by the module that Python runs. Words after a script are the script's own arguments.
    """
    words = list(takewhile(lambda word: not word.endswith(".py"), command))
    module = words.index("-m") + 1 if "-m" in words else len(words)
    run = words[module : module + 1]
    return any(PurePath(word).name in LAUNCHERS for word in words[:module]) or not MODULES.isdisjoint(run)
