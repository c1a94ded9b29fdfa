"""The `docker run` command for one machine, for sh, with what docker does not give a container by default."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gputune.checks import shm_size
from gputune.resources.printable import counted, quoted

STACK_BYTES = 64 << 20
"""The stack limit that NVIDIA's images recommend."""
CACHE = '"$HOME/.cache/gputune-docker"'
"""A folder of the host, apart from the host's own profiles: a container caches more there than profiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    gpus: int = 0
    infiniband: bool = False
    cpus: int = 1
    """A container without a limit may use them all."""
    memory_bytes: int | None = None


def text(machine: Machine, image: str, command: Sequence[str]) -> str:
    """The command below comments that give the reason for each option and hold no character special to a shell."""
    options = list(_options(machine))
    reasons = [f"# {option.split('=')[0].split()[0]}: {reason}" for option, reason in options if reason]
    return "\n".join(
        [
            "# The first start measures this machine, which takes about a minute. Later starts apply the profile.",
            *reasons,
            f"mkdir -p {CACHE} &&",
            "docker run --rm \\",
            *(f"  {option} \\" for option, _ in options),
            f"  {quoted(image, *command)}",
            "",
        ]
    )


def _options(machine: Machine) -> Iterator[tuple[str, str]]:
    """Each option as a shell reads it, with its reason; an empty one where the reason of the option above covers it."""
    if machine.gpus:
        yield "--gpus all", "made available by the NVIDIA Container Toolkit of this machine"
    size = shm_mebibytes(machine.cpus, machine.memory_bytes)
    shm = amount(size, "g", "m")
    yield (
        f"--shm-size={shm}",
        f"for the batches of DataLoader workers on {counted(machine.cpus, 'CPU')}, where docker gives 64m by default",
    )
    if machine.gpus > 1 or machine.infiniband:
        yield f"--ulimit memlock=-1 --ulimit stack={STACK_BYTES}", "NCCL locks the memory of its transfers between GPUs"
    if machine.infiniband:
        yield "--device /dev/infiniband", "the adapters through which NCCL reaches other nodes"
    yield '--user "$(id -u):$(id -g)"', "files written to the folder belong to you and not to a user of the image"
    yield "--env HOME=/cache --env USER=user", "your user has neither a home nor a name in the image"
    yield (
        f"--mount type=bind,source={CACHE},target=/cache",
        "profiles and downloads are kept, so that the machine is measured once",
    )
    yield "--env XDG_CACHE_HOME=/cache", ""
    yield "--env GPUTUNE_PROBE=missing", ""


def shm_mebibytes(cpus: int, memory_bytes: int | None) -> int:
    """Mebibytes of /dev/shm that DataLoader workers need: at most half of the memory, of which /dev/shm is a part."""
    needed = shm_size.gibibytes(cpus) * 1024
    return needed if memory_bytes is None else max(1, min(needed, memory_bytes // 2 // (1 << 20)))


def amount(size: int, gibi: str, mebi: str) -> str:
    """Mebibytes with the suffixes of docker (`g`, `m`) or Kubernetes (`Gi`, `Mi`)."""
    return f"{size // 1024}{gibi}" if size % 1024 == 0 else f"{size}{mebi}"
