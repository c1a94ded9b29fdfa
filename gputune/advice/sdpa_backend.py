"""The back end that is faster over all measured shapes and slower at none."""

from dataclasses import dataclass

from gputune.advice import Choice, Comparison, Facts, Measurement, Measurements
from gputune.advice._evidence import (
    Row,
    choose,
    missing,
    never,
    no_gain,
    of_device,
    pooled,
    range_text,
    select,
    unmeasured,
)
from gputune.advice._training import losing
from gputune.resources.printable import counted

BENCH, RATE = "attention", "throughput"
BACKENDS = ("cudnn", "flash", "efficient", "math")
"""In the order in which of two that are about as fast the first is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Row):
    """The shape and dtype that back ends are compared at."""

    dtype: str
    head: int
    """Elements of one head."""
    length: int
    """Tokens of a sequence."""
    causal: bool


Shapes = dict[Workload, "Measurement"]


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(None, "it concerns GPUs only")
    dtype, default, complete = _measured(measurements)
    if default and not complete:
        return choose(None, "no other back end ran at every shape that torch's own choice was measured at")
    gains = {name: gain for name in complete if (gain := _over(complete[name], default))}
    if not gains:
        return unmeasured(None, missing(default, complete))
    name = _first_of_the_fastest(complete, gains)
    return _choice(name, gains[name], _slower(complete[name], default), f"{dtype}, {counted(len(default), 'shape')}")


def gain_of(facts: Facts, measurements: Measurements, value: str, family: str = "") -> Comparison | None:
    _, default, complete = _measured(measurements)
    if value not in complete:
        return None
    return never() if _slower(complete[value], default) else _over(complete[value], default)


def _measured(measurements: Measurements) -> tuple[str, Shapes, dict[str, Shapes]]:
    dtype = next((name for name in ("bfloat16", "float16") if select(measurements, BENCH, RATE, dtype=name)), "")
    rows = select(measurements, BENCH, RATE, dtype=dtype)
    default = _by_shape(rows, "default")
    others = {name: _by_shape(rows, name) for name in BACKENDS}
    return dtype, default, {name: own for name, own in others.items() if default and default.keys() <= own.keys()}


def _over(shapes: Shapes, others: Shapes) -> Comparison | None:
    return pooled([shapes[one] for one in others], [*others.values()])


def _slower(shapes: Shapes, others: Shapes) -> int:
    return len(losing({str(shape): (shapes[shape], others[shape]) for shape in others}))


def _first_of_the_fastest(complete: dict[str, Shapes], gains: dict[str, Comparison]) -> str:
    """The first back end, in the order of `BACKENDS`, over which the fastest does not gain."""
    fastest = max(gains, key=lambda name: gains[name].ratio)
    if gains[fastest].verdict != "gain":
        return fastest
    over = {name: _over(complete[fastest], complete[name]) for name in gains}
    return next(name for name, by in over.items() if name == fastest or not by or by.verdict != "gain")


def _choice(name: str, best: Comparison, slower: int, where: str) -> Choice:
    """Only a back end slower at no shape is recommended: it takes effect without a line in the script."""
    ran = f"{name} ran {range_text(best)} as fast"
    if best.verdict == "gain" and slower:
        return choose(None, f"{ran} as torch's own choice, but slower at {counted(slower, 'shape')}", best, BENCH)
    if best.verdict == "gain":
        return choose(name, f"{ran} as torch's own choice in {where}", best, BENCH)
    if best.verdict == "no gain" and best.low <= 1:
        return choose(None, f"torch's own choice is already the best: {ran}", best, BENCH)
    return choose(None, f"{no_gain(best)}: {ran} as torch's own choice", best, BENCH)


def _by_shape(rows: Measurements, backend: str) -> Shapes:
    return {shape: row for row in select(rows, BENCH, RATE, backend=backend) if (shape := Workload.of(row.params))}
