"""GPUs that NVML lists and that do not answer it: which they are, why, and where on the PCI bus."""

from collections.abc import Sequence

from gputune.checks._questions import another_jobs, by_nvml, gaps_of
from gputune.facts import Facts, Gap, Gpu
from gputune.facts.health import call_of
from gputune.facts.pci import same
from gputune.resources.unreadable import Cause

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
    """Why NVML was not asked about a GPU, or not about all of it; None if it was."""
    return next((gap for gap in gaps_of(facts, gpu) if gap.cause == "not_asked"), None)


def of_this_job(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that NVML lists, without another job's: NVML may lack the permission to tell anything of these."""
    return tuple(gpu for gpu in by_nvml(facts) if not (_forbidden(facts, gpu) or another_jobs(facts, gpu)))


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


def one_of(addresses: Sequence[str]) -> str:
    return f"one of {', '.join(addresses)}" if addresses else "its bus address is not known"


def _forbidden(facts: Facts, gpu: Gpu) -> bool:
    identity = [gap for gap in gaps_of(facts, gpu) if gap.fact.rpartition(".")[2] in _IDENTITY]
    return len(identity) == len(_IDENTITY) and all(gap.cause == "no_permission" for gap in identity)
