"""Whether a command starts several ranks, which share the CPUs that a setting was measured with alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun", "srun", "ray"})
MODULES = frozenset({"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"})


def starts_ranks(command: Sequence[str]) -> bool:
    """Told by the program's name, or by the module that Python is to run."""
    return bool(command) and (PurePath(command[0]).name in LAUNCHERS or not MODULES.isdisjoint(command))
