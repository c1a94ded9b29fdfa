"""Short constructors of findings, about the machine or about each GPU."""

from collections.abc import Callable
from dataclasses import replace

from gputune.checks._common import Facts, Finding, Findings, Gpu, gap, has_gpu, reason


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
    """`what` is unknown, with the gap's reason.

    If torch did not answer at all, every check that depends on it says so in the same words, which reports then merge.
    """
    why, (subject, _, name) = reason(facts, fact), fact.partition(".")
    if subject == "libraries" and facts.libraries.torch is None and (name == "torch" or why is None):
        return unknown(f"torch could not be asked: {reason(facts, 'libraries.torch') or 'it gave no answer'}")
    return unknown(f"{what} could not be read{f' ({why})' if why else ''}")


def each_gpu(
    facts: Facts,
    judge: Callable[[Gpu], Finding],
    *fields: str,
    lacking: Callable[[Gpu], str | None] = lambda gpu: None,
) -> Findings:
    """`judge` every GPU for which all `fields` of its health were read.

    If the driver says that there is no such thing, `lacking` may explain why this hardware lacks it: NOT_APPLICABLE. A
    field that is missing for any other reason is UNKNOWN.
    """
    if not facts.gpus:
        yield no_gpu(facts)
    for gpu in facts.gpus:
        missing = next((field for field in fields if getattr(gpu.health, field) is None), None)
        finding = judge(gpu) if missing is None else _missing(facts, gpu, missing, lacking)
        yield replace(finding, subject=f"GPU {gpu.index}")


def fully_read(
    facts: Facts, gpu: Gpu, good: Finding, *fields: str, lacking: Callable[[Gpu], str | None] = lambda gpu: None
) -> Finding:
    """`good` if all `fields` of a GPU's health were read; else the finding for the missing one, as in `each_gpu`."""
    missing = next((field for field in fields if getattr(gpu.health, field) is None), None)
    return good if missing is None else _missing(facts, gpu, missing, lacking)


def below(value: float | None, other: float | None) -> bool:
    """Both values were read, and the first is below the second."""
    return value is not None and other is not None and value < other


def not_seen(facts: Facts, gpu: Gpu) -> Finding | None:
    """The finding for a GPU that torch does not see although it sees others; None if torch sees it, or sees none."""
    if facts.libraries.device_count and gpu.torch_index is None:
        return not_applicable("torch does not see this GPU")
    return None


def each_capability(facts: Facts, judge: Callable[[Gpu], Finding]) -> Findings:
    """`judge` every GPU whose compute capability was read; the others are UNKNOWN."""
    if not facts.gpus:
        yield no_gpu(facts)
    for gpu in facts.gpus:
        fact = f"gpu.{gpu.index}.compute_capability"
        finding = judge(gpu) if gpu.compute_capability else unread(facts, fact, "its compute capability")
        yield replace(finding, subject=f"GPU {gpu.index}")


def _missing(facts: Facts, gpu: Gpu, field: str, lacking: Callable[[Gpu], str | None]) -> Finding:
    missing = gap(facts, f"gpu.{gpu.index}.{field}")
    if missing is None and gpu.is_mig_slice:
        return not_applicable("a MIG slice: see the findings about its GPU")
    if missing is None:
        return unknown(f"NVML does not describe this GPU ({reason(facts, 'driver.nvml') or 'it does not list it'})")
    lack = lacking(gpu) if missing.cause in ("not_supported", "no_such_call") else None
    return not_applicable(lack) if lack else unread(facts, f"gpu.{gpu.index}.{field}", field.replace("_", " "))


def no_gpu(facts: Facts) -> Finding:
    """The finding of a check about each GPU if none is listed."""
    if has_gpu(facts):
        return unknown("there is a GPU, but neither NVML nor torch describes it")
    return not_applicable("no NVIDIA GPU was found")


def without_cuda_torch(facts: Facts) -> Finding | None:
    """The finding of a check about torch's CUDA if torch did not answer or is built without CUDA; else None."""
    if facts.libraries.torch is None:
        return unread(facts, "libraries.torch", "torch's version")
    if facts.libraries.cuda is None:
        return not_applicable("this torch is built without CUDA")
    return None


def smi(gpu: Gpu, *options: str) -> str:
    """nvidia-smi commands for this GPU, named by its bus address, since a container may number GPUs differently."""
    which = gpu.pci_bus_id or gpu.uuid or gpu.index
    return "on the host: " + "; ".join(f"sudo nvidia-smi -i {which} {option}" for option in options)


def counted(count: int, noun: str) -> str:
    """`1 error`, `2 errors`, `3 processes`."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{ending}"


def gib(size: int) -> str:
    """A size in bytes as text, in the unit that suits it: 64 KiB, 64 MiB, 1.5 GiB."""
    for unit, word, digits in ((1 << 30, "GiB", 1), (1 << 20, "MiB", 0)):
        if size >= unit:
            return f"{size / unit:.{digits}f} {word}"
    return f"{size / 1024:.0f} KiB"
