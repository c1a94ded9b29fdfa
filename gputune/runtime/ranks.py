"""Whether a command starts several ranks. They share the CPUs, while settings were measured in a single process."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import PurePath

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
    return any(PurePath(word).name in LAUNCHERS for word in words[:module]) or not MODULES.isdisjoint(
        words[module:][:1]
    )
