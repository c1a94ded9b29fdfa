"""What a probe's measurements tell of a GPU under load."""

from functools import reduce
from operator import or_

from gputune.checks._answers import not_applicable, unknown
from gputune.checks._common import Facts, Finding, Gpu, Measurements


def conditions(facts: Facts, gpu: Gpu, measurements: Measurements, name: str) -> list[int]:
    """A condition's values (`throttle_reasons`, `pcie_generation`) while this GPU was measured."""
    mine = [row.conditions for row in measurements if facts.device_gpu(row.device) == gpu]
    return [int(row[name]) for row in mine if name in row]


def throttle_reasons(facts: Facts, gpu: Gpu, measurements: Measurements) -> int | None:
    """NVML's bits, all that occurred; None where none were sampled."""
    masks = conditions(facts, gpu, measurements, "throttle_reasons")
    return reduce(or_, masks) if masks else None


def unmeasured(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    """The answer of a check that needs a load, where none tells."""
    if any(facts.device_gpu(row.device) == gpu for row in measurements):
        return unknown("the probe could not read it under load")
    return not_applicable("only a load tells: gputune probe measures under one")
