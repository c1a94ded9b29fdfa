"""How many GPUs were promised, which of those that NVML lists do not answer it, and which torch does not see."""

import re
from dataclasses import dataclass

from gputune.checks._answers import Facts, Finding, Gpu, error
from gputune.checks._questions import another_jobs, gaps_of, reason
from gputune.checks._remedies import python_of, typed
from gputune.facts import Gap
from gputune.facts.health import call_of
from gputune.facts.pci import same
from gputune.facts.visible_gpus import VARIABLE, visible
from gputune.resources.unreadable import Cause

GRANTED = "NVIDIA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    count: int
    by: str
    """Who says so, as the beginning of a message."""
    variable: str | None
    """The environment variable that says so; None for the option --expect-gpus."""
    uuids: tuple[str, ...] = ()


def promise(facts: Facts) -> Promise | None:
    """The GPUs that --expect-gpus asks for, or else the scheduler's grant, or else the container toolkit's variable."""
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
    value = facts.environment.get(GRANTED, "")
    # A cgroup that forbids some of the device files gave only the others.
    count = _named(facts, value) - len(facts.container.forbidden_device_files)
    if count <= 0:
        return None
    uuids = tuple(sorted(name for name in entries(value) if name.startswith("GPU-")))
    return Promise(count=count, by=f"{GRANTED}={value}", variable=GRANTED, uuids=uuids)


def _named(facts: Facts, value: str) -> int:
    """How many whole GPUs the variable names; 0 for none, and for what does not tell. `all` is the image's default, and
    decides nothing, in a scheduler's job or pod, and in podman, which gives devices by name.
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


FATAL: tuple[Cause, ...] = ("gpu_lost", "needs_reset", "killed", "exited", "no_answer", "timeout")
"""The causes of which a single one shows that a GPU does not answer, the one that tells most first."""
_IDENTITY = ("uuid", "name", "pci_bus_id", "memory")
_TELL_NOTHING: tuple[Cause, ...] = ("no_permission", "not_asked", "not_supported", "no_such_call")
_ODD_CALLS = 3
"""From so many calls with an unknown error on it is the GPU that is broken, not a call."""


def silence(facts: Facts, gpu: Gpu) -> Gap | None:
    """Why a GPU counts as one that does not answer; None if it answers, or if that is not known.

    A single call with an unknown error is no sign. Where nothing tells which GPU this is, its handle fails, which is a
    fault unless this process lacks the permission or NVML was not asked.
    """
    gaps = gaps_of(facts, gpu)
    for cause in FATAL:
        if found := next((gap for gap in gaps if gap.cause == cause), None):
            return found
    unidentified = [gap for gap in gaps if gap.fact.rpartition(".")[2] in _IDENTITY]
    if len(unidentified) == len(_IDENTITY) and unidentified[0].cause not in _TELL_NOTHING:
        return unidentified[0]
    odd = [gap for gap in gaps if gap.cause == "unknown_error"]
    return odd[0] if len({call_of(gap.fact.rpartition(".")[2]) for gap in odd}) >= _ODD_CALLS else None


def not_asked(facts: Facts, gpu: Gpu) -> Gap | None:
    return next((gap for gap in gaps_of(facts, gpu) if gap.cause == "not_asked"), None)


def of_this_job(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that NVML lists, without another job's: NVML may lack the permission to tell anything of these."""
    asked = {gap.fact for gap in facts.gaps}
    by_nvml = [gpu for gpu in facts.gpus if gpu.pci_bus_id or f"gpu.{gpu.index}.pci_bus_id" in asked]
    return tuple(gpu for gpu in by_nvml if not (_forbidden(facts, gpu) or another_jobs(facts, gpu)))


def unlisted(facts: Facts) -> list[str]:
    """The addresses on the PCI bus at which NVIDIA's driver holds a GPU, and that none of NVML's GPUs has."""
    ours = [gpu.address for gpu in facts.pci_gpus or () if gpu.driver == "nvidia"]
    return [address for address in ours if not any(same(address, gpu.pci_bus_id or "") for gpu in facts.gpus)]


def address(facts: Facts, gpu: Gpu) -> str | None:
    """A GPU's address: NVML's, or the only one on the bus that no other GPU has."""
    if gpu.pci_bus_id:
        known = (found.address for found in facts.pci_gpus or () if same(found.address, gpu.pci_bus_id))
        return next(known, gpu.pci_bus_id.lower())
    left = unlisted(facts)
    return left[0] if len(left) == 1 else None


def _forbidden(facts: Facts, gpu: Gpu) -> bool:
    identity = [gap for gap in gaps_of(facts, gpu) if gap.fact.rpartition(".")[2] in _IDENTITY]
    return len(identity) == len(_IDENTITY) and all(gap.cause == "no_permission" for gap in identity)


def listed(facts: Facts) -> int | None:
    """How many GPUs NVML lists for this job; None if it does not say."""
    return None if not facts.driver.nvml or reason(facts, "gpu.count") else len(of_this_job(facts))


def seen(facts: Facts) -> int | None:
    """How many whole GPUs torch sees; None if it sees none, which is gpu_absent's matter, or slices of them."""
    return None if sliced(facts) else facts.libraries.device_count or None


def unseen(facts: Facts) -> Finding | None:
    """The error that torch sees fewer of the GPUs that NVML lists than it may; None if it sees all of these."""
    count, left = seen(facts), _left(facts)
    if count is None or left is None or count >= len(left):
        return None
    matched = any(gpu.torch_index is not None for gpu in left)
    which = [f"GPU {gpu.index}" for gpu in left if gpu.torch_index is None] if matched else []
    message = f"NVML lists {len(left)} GPUs that torch may use, but torch sees {count}"
    command = f"{python_of(facts)} -c 'import torch; torch.cuda.init()'; sudo dmesg | grep NVRM"
    remedy = typed(command, note="the one shows torch's reason, the other, as root on the host, the driver's")
    subject = which[0] if len(which) == 1 else None
    return error(f"{message}{', not ' if which else ''}{', '.join(which)}", remedy, subject)


def _left(facts: Facts) -> list[Gpu] | None:
    """The GPUs that torch may use; None where another check judges that, or it is not known."""
    gpus = [gpu for gpu in of_this_job(facts) if not silence(facts, gpu)]
    value = facts.environment.get(VARIABLE)
    if listed(facts) is None or any(gpu.health.compute_mode is None for gpu in gpus):
        return None
    if value is not None and not re.fullmatch(r"[0-9 ,]+", value):
        return None  # cuda_visible_devices compares UUIDs
    taken = visible(value, [gpu.uuid for gpu in gpus])[0] if value is not None else range(len(gpus))
    return [gpus[index] for index in taken if gpus[index].health.compute_mode != "prohibited"]
