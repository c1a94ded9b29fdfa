"""The smallest multiple that no larger one certainly outruns, for each dtype."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gputune.advice import Choice, Comparison, Facts, Measurement, Measurements
from gputune.advice._evidence import NOT_MEASURED, Row, choose, compared, missing, product, select, unmeasured

BENCH = "matmul_alignment"
WORTH = 1.05
"""Without any effect of alignment, neighbouring sizes differ by a few percent: by 4 % in full FP32 on an H200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment(Row):
    """A matmul of which one dimension is a multiple of a power of two and no more."""

    dtype: str
    product: str
    """forward, grad_input or grad_weight"""
    dim: str
    size: int
    multiple: int
    full_tiles: bool = False
    """In profiles of before: the last tile is exactly filled, which makes a size faster for another reason."""


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    rows = [row for row in select(measurements, BENCH, "throughput") if Alignment.of(row.params)]
    dtypes = list(dict.fromkeys(str(row.params["dtype"]) for row in rows))
    needs = {dtype: {dim: _multiple(rows, dtype, dim) for dim in "MNK"} for dtype in dtypes}
    value = {dtype: max(dims["N"] or 1, dims["K"] or 1) for dtype, dims in needs.items() if dims["N"] or dims["K"]}
    if not value:
        return unmeasured({}, missing(rows))
    gain = max((_loss(rows, dtype) for dtype in dtypes), key=lambda loss: loss.ratio if loss else 0, default=None)
    reason = "; ".join(f"{dtype}: {_words(dims)}" for dtype, dims in needs.items())
    if gain and max(value.values()) > 1:
        reason += f". An aligned size ran up to {gain.ratio:.3g} times as fast as an odd one"
    return choose(value, reason, gain, BENCH)


def gain_of(facts: Facts, measurements: Measurements, value: dict[str, int], family: str = "") -> Comparison | None:
    """The gains of all dtypes' multiples over odd sizes, multiplied; of each dtype the larger gain of N and K."""
    gains = []
    for dtype, multiple in value.items():
        sizes = [by_multiple(measurements, dtype, dim, "forward") for dim in "NK"]
        own = [gain for one in sizes if (gain := compared(one.get(multiple), one.get(1)))]
        gains += [max(own, key=lambda gain: gain.ratio)] if own else []
    return product(gains)


def by_multiple(measurements: Iterable[Measurement], dtype: str, dim: str, product: str) -> dict[int, Measurement]:
    """Runs per second by multiple: sizes that need the same number of tiles should take the same time."""
    rows = select(measurements, BENCH, "throughput", dtype=dtype, dim=dim, product=product)
    sized = [(run, row) for row in rows if (run := Alignment.of(row.params)) and min(run.size, run.multiple) > 0]
    sized.sort(key=lambda pair: pair[0].multiple)
    return {
        run.multiple: replace(row, unit="1/s", samples=tuple(sample / run.size for sample in row.samples))
        for run, row in sized
        if not run.full_tiles
    }


def _multiple(rows: Measurements, dtype: str, dim: str) -> int | None:
    """The largest multiple that one of the products needs; None where too little was measured."""
    own = select(rows, BENCH, "throughput", dtype=dtype, dim=dim)
    products = dict.fromkeys(str(row.params.get("product")) for row in own)
    needed = [_needed(by_multiple(rows, dtype, dim, product)) for product in products]
    return None if None in needed else max((multiple for multiple in needed if multiple), default=None)


def _needed(rows: Mapping[int, Measurement]) -> int | None:
    """The smallest multiple that no larger one certainly outruns by more than `WORTH`."""
    if len(rows) < 2:
        return None
    for multiple, row in rows.items():
        larger = [other for size, other in rows.items() if size > multiple]
        if any(compared(other, row) is None for other in larger):
            return None
        if not any(gain.low > WORTH for other in larger if (gain := compared(other, row))):
            return multiple
    return None


def _loss(rows: Measurements, dtype: str) -> Comparison | None:
    """The largest gain of a forward product's best multiple over an odd size, over N and K."""
    groups = [list(by_multiple(rows, dtype, dim, "forward").values()) for dim in "NK"]
    losses = [loss for sizes in groups if len(sizes) >= 2 and (loss := compared(sizes[-1], sizes[0]))]
    return max(losses, key=lambda loss: loss.ratio, default=None)


def _words(multiples: Mapping[str, int | None]) -> str:
    padded = dict.fromkeys(multiple for multiple in multiples.values() if multiple and multiple > 1)
    words = [f"{_dims(multiples, multiple)} in multiples of {multiple}" for multiple in padded]
    unpadded = _dims(multiples, 1)
    return ", ".join([*words, f"any {unpadded}"] if unpadded else words) or NOT_MEASURED


def _dims(multiples: Mapping[str, int | None], wanted: int) -> str:
    return " and ".join(dim for dim, multiple in multiples.items() if multiple == wanted)
