"""The `docker run` line for one machine, for sh: what this machine has, and what a container would lack without being asked."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gputune.checks._answers import counted
from gputune.deploy import shared_memory

STACK_BYTES = 64 << 20
"""What NVIDIA's own images ask for."""

CACHE = '"$HOME/.cache/gputune-docker"'
"""On the host, but not where gputune of the host keeps its own: a container writes more there than profiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a container gets from its host."""

    gpus: int = 0
    infiniband: bool = False
    cpus: int = 1
    """Which it may use all, without a limit."""
    memory_bytes: int | None = None


def text(machine: Machine, image: str, command: Sequence[str]) -> str:
    """The command, and above it the reasons as comments, in which no shell finds anything to act upon."""
    options = list(_options(machine))
    reasons = [f"# {option.split('=')[0].split()[0]}: {why}" for option, why in options if why]
    return "\n".join(
        [
            "# The first start measures this machine, which takes about a minute, and later ones apply what was found.",
            *reasons,
            f"mkdir -p {CACHE} &&",
            "docker run --rm \\",
            *(f"  {option} \\" for option, _ in options),
            f"  {shlex.join([image, *command])}",
            "",
        ]
    )


def _options(machine: Machine) -> Iterator[tuple[str, str]]:
    """Each option as a shell reads it, with its reason where it is not that of the one before."""
    if machine.gpus:
        yield "--gpus all", "brought in by the NVIDIA Container Toolkit of this machine"
    size = shared_memory.mebibytes(machine.cpus, machine.memory_bytes)
    shm = shared_memory.amount(size, "g", "m")
    yield (
        f"--shm-size={shm}",
        f"for the batches of DataLoader workers on {counted(machine.cpus, 'CPU')}, where docker gives 64m",
    )
    if machine.gpus > 1 or machine.infiniband:
        yield f"--ulimit memlock=-1 --ulimit stack={STACK_BYTES}", "NCCL locks memory for what goes between GPUs"
    if machine.infiniband:
        yield "--device /dev/infiniband", "the adapters through which NCCL reaches other nodes"
    yield '--user "$(id -u):$(id -g)"', "what is written belongs to you, and to no user of the image"
    yield "--env HOME=/cache --env USER=user", "that user has neither a home nor a name in the image"
    yield (
        f"--mount type=bind,source={CACHE},target=/cache",
        "profiles and downloads are kept, so that a machine is measured once",
    )
    yield "--env XDG_CACHE_HOME=/cache", ""
    yield "--env GPUTUNE_PROBE=missing", ""
