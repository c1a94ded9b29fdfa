"""The memory format in which a convnet's steps, or else convolutions, run faster."""

from gputune.advice import Choice, Facts, Measurement, Measurements
from gputune.advice._evidence import decide, missing, pooled, select, unmeasured
from gputune.advice._training import choice_of_option
from gputune.advice.amp_dtype import recommend as recommend_amp


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if choice := of_family(facts, measurements, "convnet"):
        return choice
    rows = select(measurements, "conv", "throughput", kernel="3x3", **{"pass": "forward"})
    rows = [row for row in rows if _decides(row)]
    dtype = _dtype(facts, measurements, rows)
    last, first = (select(rows, "conv", "throughput", dtype=dtype, channels_last=on) for on in (True, False))
    channels = ", ".join(str(row.params["channels"]) for row in last)
    what = f"{dtype} convolutions of {channels} channels in channels_last"
    comparison = pooled(last, first)
    if comparison is None:
        return unmeasured(False, missing(last, first))
    return decide(comparison, what, "conv")


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    return choice_of_option(measurements, family, "channels_last", f"steps of a {family} in channels_last")


def _decides(row: Measurement) -> bool:
    """Whether a convolution has the channels that networks have inside, and cuDNN's own choice of algorithm."""
    channels = (row.params["channels"], row.params.get("out", 8))
    return all(int(count) % 8 == 0 for count in channels) and not row.params.get("cudnn_benchmark")


def _dtype(facts: Facts, measurements: Measurements, rows: Measurements) -> str:
    """The dtype that a recommended network computes in, else cuDNN's default, if `rows` have both formats of it."""
    order = ("tf32", "float32", "bfloat16", "float16")
    for dtype in (recommend_amp(facts, measurements).value, *order):
        if {row.params["channels_last"] for row in rows if row.params["dtype"] == dtype} == {False, True}:
            return str(dtype)
    return order[0]
