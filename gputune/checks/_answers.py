"""The types in the signatures of checks, and short constructors of findings, about the machine or about each GPU."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

from gputune.checks import Finding
from gputune.checks._questions import another_jobs, gap, has_gpu, reason
from gputune.facts import Facts, Gpu, Health
from gputune.facts.precision import tensor_core_dtypes
from gputune.measurement import Measurement
from gputune.resources.printable import counted

__all__ = ["Facts", "Finding", "Findings", "Gpu", "Health", "Measurements", "counted"]

Findings = Iterator[Finding]
Measurements = Sequence[Measurement]
Check = Callable[[Facts, Measurements], Findings]
Judge = Callable[[Facts, Gpu, Measurements], Finding]
Lacking = Callable[[Gpu], str | None]
"""Why a GPU of this kind lacks what was asked about; None if it should have it."""


def ok(message: str, subject: str | None = None) -> Finding:
    return Finding(severity="OK", message=message, subject=subject)


def not_applicable(message: str, subject: str | None = None) -> Finding:
    return Finding(severity="NOT_APPLICABLE", message=message, subject=subject)


def unknown(message: str, subject: str | None = None, fact: str | None = None) -> Finding:
    return Finding(severity="UNKNOWN", message=message, subject=subject, fact=fact)


def warning(message: str, remedy: str, subject: str | None = None, fact: str | None = None) -> Finding:
    return Finding(severity="WARNING", message=message, remedy=remedy, subject=subject, fact=fact)


def unset(message: str, *variables: str) -> Finding:
    """A warning whose remedy is to unset environment variables; the first is its subject."""
    return warning(message, f"unset {' '.join(variables)}", variables[0])


def error(message: str, remedy: str, subject: str | None = None, fact: str | None = None) -> Finding:
    return Finding(severity="ERROR", message=message, remedy=remedy, subject=subject, fact=fact)


def unread(facts: Facts, fact: str, what: str) -> Finding:
    """`what` is unknown, with the gap's reason. If torch did not answer at all, all checks say so in the same words."""
    why, (subject, _, name) = reason(facts, fact), fact.partition(".")
    if subject == "libraries" and facts.libraries.torch is None and (name == "torch" or why is None):
        why = reason(facts, "libraries.torch") or "it gave no answer"
        return unknown(f"torch could not be asked: {why}", fact="libraries.torch")
    return unknown(f"{what} could not be read{f' ({why})' if why else ''}", fact=fact)


def one_finding(judge: Callable[[Facts], Finding]) -> Check:
    """Turn a function that gives one finding about the machine into a check."""
    return lambda facts, measurements: iter([judge(facts)])


def each_gpu(*fields: str, **options: Any) -> Callable[[Judge], Check]:
    """Turn a function that judges one GPU into a check of all of them; the options are those of `judge_gpus`."""

    def check_of(judge: Judge) -> Check:
        return lambda facts, measurements: judge_gpus(
            facts, lambda gpu: judge(facts, gpu, measurements), *fields, **options
        )

    return check_of


def judge_gpus(
    facts: Facts,
    judge: Callable[[Gpu], Finding],
    *fields: str,
    lacking: Lacking = lambda gpu: None,
    used_by_torch: bool = False,
) -> Findings:
    """`judge` every GPU of which all `fields` were read; `used_by_torch` leaves out those that torch does not see."""
    if not facts.gpus:
        yield no_gpu(facts)
    for gpu in facts.gpus:
        others = not_applicable("this job was not given this GPU") if another_jobs(facts, gpu) else None
        found = others or not_read(facts, gpu, *fields, lacking=lacking)
        if not found and used_by_torch and facts.libraries.device_count and gpu.torch_index is None:
            found = not_applicable("torch does not see this GPU")
        yield replace(found or judge(gpu), subject=f"GPU {gpu.index}")


def not_read(facts: Facts, gpu: Gpu, *fields: str, lacking: Lacking = lambda gpu: None) -> Finding | None:
    """The finding for the first of `fields` that was not read; None if all were. `lacking` tells why a GPU has none."""
    values = {field: getattr(gpu if hasattr(gpu, field) else gpu.health, field) for field in fields}
    field = next((name for name, value in values.items() if value is None), None)
    if field is None:
        return None
    missing = gap(facts, f"gpu.{gpu.index}.{field}")
    if missing is None and gpu.is_mig_slice:
        return not_applicable("a MIG slice: see the findings about its GPU")
    if missing is None:
        why = reason(facts, "driver.nvml") or "it does not list it"
        return unknown(f"NVML does not describe this GPU ({why})", fact="driver.nvml")
    lack = lacking(gpu) if missing.cause in ("not_supported", "no_such_call") else None
    return not_applicable(lack) if lack else unread(facts, f"gpu.{gpu.index}.{field}", field.replace("_", " "))


def below(value: float | None, other: float | None) -> bool:
    return value is not None and other is not None and value < other


def no_gpu(facts: Facts) -> Finding:
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


def without_tf32(facts: Facts) -> Finding | None:
    """The finding of a check about TF32 if no GPU has it; None if one has it, or its compute capability is unknown."""
    if not facts.gpus:
        return no_gpu(facts)
    if all(gpu.compute_capability and "tf32" not in tensor_core_dtypes(gpu.compute_capability) for gpu in facts.gpus):
        return not_applicable("no GPU here has TF32 (compute capability 8.0 or higher)")
    return None


def gib(size: int) -> str:
    """A size in bytes as text, in the unit that suits it: 64 KiB, 64 MiB, 1.5 GiB."""
    for unit, word, digits in ((1 << 30, "GiB", 1), (1 << 20, "MiB", 0)):
        if size >= unit:
            return f"{size / unit:.{digits}f} {word}"
    return f"{size / 1024:.0f} KiB"


def conditions(facts: Facts, gpu: Gpu, measurements: Measurements, name: str) -> list[int]:
    """The values of a condition (such as `throttle_reasons`) in the measurements of this GPU."""
    recorded = [row.conditions for row in measurements if facts.device_gpu(row.device) == gpu]
    return [int(row[name]) for row in recorded if name in row]


def throttle_reasons(facts: Facts, gpu: Gpu, measurements: Measurements) -> int | None:
    """NVML's bit mask of all throttle reasons that occurred; None if none were sampled."""
    masks = conditions(facts, gpu, measurements, "throttle_reasons")
    return reduce(or_, masks) if masks else None


def unmeasured(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    """The finding of a check that needs a load, if no measurement of this GPU has what it asks for."""
    if any(facts.device_gpu(row.device) == gpu for row in measurements):
        return unknown("the probe could not read it under load")
    return not_applicable("only a load shows it: gputune probe measures under one")
