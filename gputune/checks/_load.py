"""A GPU's state under load, from a probe's measurements."""

from functools import reduce
from operator import or_

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, not_applicable, unknown


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
