"""How many GPUs a user, a scheduler or the container toolkit promised this process."""

from dataclasses import dataclass

from gputune.facts import Facts

VARIABLE = "NVIDIA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """How many GPUs should be here."""

    count: int
    by: str
    """Who says so, as the beginning of a message."""
    variable: str | None
    """The environment variable that says so; None for the option --expect-gpus."""
    uuids: tuple[str, ...] = ()
    """The UUIDs of the GPUs, where they are named by UUID."""


def promise(facts: Facts) -> Promise | None:
    """What --expect-gpus says, or else the scheduler's grant, or else the container toolkit's variable."""
    if facts.gpus_expected is not None:
        return Promise(count=facts.gpus_expected, by=f"--expect-gpus {facts.gpus_expected}", variable=None)
    return _scheduled(facts) if facts.scheduler.gpu_count is not None else _contained(facts)


def _scheduled(facts: Facts) -> Promise | None:
    count, name = facts.scheduler.gpu_count, facts.scheduler.name or "the scheduler"
    if not count or facts.scheduler.gpus_bound or sliced(facts):
        return None
    variable = "SLURM_JOB_GPUS" if facts.scheduler.gpus else "SLURM_GPUS_ON_NODE"
    return Promise(count=count, by=f"{name} granted {count} GPU{'s' if count > 1 else ''}", variable=variable)


def _contained(facts: Facts) -> Promise | None:
    value = facts.environment.get(VARIABLE, "")
    # A cgroup that forbids some of the device files gave only the others.
    count = _named(facts, value) - len(facts.container.forbidden_device_files)
    if count <= 0:
        return None
    uuids = tuple(sorted(name for name in entries(value) if name.startswith("GPU-")))
    return Promise(count=count, by=f"{VARIABLE}={value}", variable=VARIABLE, uuids=uuids)


def _named(facts: Facts, value: str) -> int:
    """How many whole GPUs the variable names; 0 for none, and for what does not tell.

    `all` stands for the GPUs that the host's driver holds, except in a scheduler's job or pod, and in podman, which
    gives devices by name: there it is the image's default, and decides nothing.
    """
    named = entries(value)
    if named == {"all"}:
        decides = not facts.scheduler.name and facts.container.kind != "podman"
        return sum(gpu.driver == "nvidia" for gpu in facts.pci_gpus or ()) if decides else 0
    whole = all(entry.startswith("GPU-") or entry.isdecimal() for entry in named)
    return len(named) if whole else 0


def entries(value: str) -> set[str]:
    """The entries of NVIDIA_VISIBLE_DEVICES, also where they are names of the Container Device Interface."""
    return {part.strip().removeprefix("nvidia.com/gpu=") for part in value.split(",") if part.strip()}


def sliced(facts: Facts) -> bool:
    """There are MIG slices, which a scheduler counts and torch sees as GPUs, and NVML does not list."""
    by_variable = "MIG-" in facts.environment.get("CUDA_VISIBLE_DEVICES", "")
    return by_variable or any(gpu.is_mig_slice or gpu.health.mig for gpu in facts.gpus)
