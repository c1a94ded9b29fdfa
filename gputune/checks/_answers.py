"""Findings in a word: what checks answer with, about the machine or about each GPU."""

from collections.abc import Callable
from dataclasses import replace

from gputune.checks._common import Facts, Finding, Findings, Gpu, gpu_beside, reason
from gputune.host import NOT_SUPPORTED


def ok(message: str, subject: str | None = None) -> Finding:
    return Finding(severity="OK", message=message, subject=subject)


def not_applicable(message: str, subject: str | None = None) -> Finding:
    return Finding(severity="NOT_APPLICABLE", message=message, subject=subject)


def unknown(message: str, subject: str | None = None) -> Finding:
    return Finding(severity="UNKNOWN", message=message, subject=subject)


def warning(message: str, remedy: str, subject: str | None = None) -> Finding:
    return Finding(severity="WARNING", message=message, remedy=remedy, subject=subject)


def error(message: str, remedy: str, subject: str | None = None) -> Finding:
    return Finding(severity="ERROR", message=message, remedy=remedy, subject=subject)


def unread(facts: Facts, fact: str, what: str) -> Finding:
    """`what` is not known; the gap's reason goes with it. What only torch can tell has torch's, in the same words for all."""
    why, torch = reason(facts, fact), reason(facts, "libraries.torch")
    if fact.startswith("libraries.") and facts.libraries.torch is None and why in (None, torch):
        return unknown(f"torch could not be asked: {torch or 'it gave no answer'}")
    return unknown(f"{what} could not be read{f' ({why})' if why else ''}")


def each_gpu(
    facts: Facts,
    judge: Callable[[Gpu], Finding],
    *fields: str,
    lacking: Callable[[Gpu], str | None] = lambda gpu: None,
) -> Findings:
    """Judge every GPU of whose health all `fields` were read.

    Where one was not, because the driver says that it has no such thing, `lacking` may name the hardware that lacks it. Else
    it is UNKNOWN.
    """
    if not facts.gpus:
        yield no_gpu(facts)
    for gpu in facts.gpus:
        missing = next((field for field in fields if getattr(gpu.health, field) is None), None)
        found = judge(gpu) if missing is None else _missing(facts, gpu, missing, lacking)
        yield replace(found, subject=f"GPU {gpu.index}")


def fully_read(
    facts: Facts, gpu: Gpu, good: Finding, *fields: str, lacking: Callable[[Gpu], str | None] = lambda gpu: None
) -> Finding:
    """`good`, where all `fields` of a GPU's health were read; else what `each_gpu` would say of the missing one."""
    missing = next((field for field in fields if getattr(gpu.health, field) is None), None)
    return good if missing is None else _missing(facts, gpu, missing, lacking)


def below(value: float | None, other: float | None) -> bool:
    """Both were read, and the one is below the other."""
    return value is not None and other is not None and value < other


def not_seen(facts: Facts, gpu: Gpu) -> Finding | None:
    """The answer about a GPU that torch does not see beside others, where only those that it sees matter."""
    if facts.libraries.device_count and gpu.torch_index is None:
        return not_applicable("torch does not see this GPU")
    return None


def each_capability(facts: Facts, judge: Callable[[Gpu], Finding]) -> Findings:
    """Judge every GPU whose compute capability was read; the others are UNKNOWN."""
    if not facts.gpus:
        yield no_gpu(facts)
    for gpu in facts.gpus:
        fact = f"gpu.{gpu.index}.compute_capability"
        found = judge(gpu) if gpu.compute_capability else unread(facts, fact, "its compute capability")
        yield replace(found, subject=f"GPU {gpu.index}")


def _missing(facts: Facts, gpu: Gpu, field: str, lacking: Callable[[Gpu], str | None]) -> Finding:
    why = reason(facts, f"gpu.{gpu.index}.{field}")
    if why is None and "MIG" in gpu.name:
        return not_applicable("a MIG slice: what is said of its GPU holds for it")
    if why is None:
        return unknown(f"NVML tells nothing of this GPU ({reason(facts, 'driver.nvml') or 'it does not list it'})")
    lack = lacking(gpu) if why == NOT_SUPPORTED or "Function Not Found" in why or "deprecated" in why else None
    return not_applicable(lack) if lack else unread(facts, f"gpu.{gpu.index}.{field}", field.replace("_", " "))


def no_gpu(facts: Facts) -> Finding:
    """The answer of a check about each GPU where none is listed."""
    if gpu_beside(facts):
        return unknown("there is a GPU, but neither NVML nor torch describes it")
    return not_applicable("no NVIDIA GPU is known here")


def without_cuda_torch(facts: Facts) -> Finding | None:
    """The answer of a check about torch's CUDA where torch did not answer or has none; None where it has."""
    if facts.libraries.torch is None:
        return unread(facts, "libraries.torch", "torch's version")
    if facts.libraries.cuda is None:
        return not_applicable("this torch is built without CUDA")
    return None


def smi(gpu: Gpu, *options: str) -> str:
    """The commands that do something to this GPU. In a container its number is another one, the bus address is not."""
    which = gpu.pci_bus_id or gpu.uuid or gpu.index
    return "on the host: " + "; ".join(f"sudo nvidia-smi -i {which} {option}" for option in options)


def counted(count: int, noun: str) -> str:
    """`1 error`, `2 errors`, `3 processes`."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{ending}"


def gib(size: int) -> str:
    """A size in a word: 64 KiB, 64 MiB, 1.5 GiB."""
    for unit, word, digits in ((1 << 30, "GiB", 1), (1 << 20, "MiB", 0)):
        if size >= unit:
            return f"{size / unit:.{digits}f} {word}"
    return f"{size / 1024:.0f} KiB"
