"""The attention back end that torch tries first: `flash`, `efficient`, `cudnn` or `math`; none keeps torch's own order.

torch has an order of back ends and takes the first that accepts the inputs; which one it puts first differs by release
and GPU. The others stay as a fallback: for flash, efficient and math those before it in torch's order are switched off;
cuDNN is put first. cuDNN plans every new sequence length anew, which takes tens of milliseconds: where lengths vary,
flash may serve better than the measured speed says. Where a program switched back ends itself, nothing is changed.

Source: PyTorch, `torch.nn.attention.sdpa_kernel` and `torch.backends.cuda`; ATen's sdp_utils.cpp, in which torch
replaces its order at the first call on a GPU only in order to put cuDNN first.
"""

from dataclasses import dataclass
from typing import Literal

from ..resources.printable import counted
from . import Choice, Comparison, Facts, Measurement, Measurements, Need, Numerics, Phase, Stage
from ._evidence import Row, choose, missing, never, no_gain, of_device, pooled, range_text, select, unmeasured
from ._training import losing

VALUE = Literal["flash", "efficient", "cudnn", "math"] | None
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
STAGE: Stage = "options"
AFTER = ("fused_optimizer",)
CANDIDATE = "flash"
NEEDS: tuple[Need, ...] = ("gpu", "attention")

BENCH, RATE = "attention", "throughput"

_TOGGLES = {"cudnn": "cudnn", "flash": "flash", "efficient": "mem_efficient", "math": "math"}
"""torch's name of each back end in `torch.backends.cuda.enable_*_sdp`."""
_OFF = {
    "flash": frozenset({"cudnn"}),
    "efficient": frozenset({"cudnn", "flash"}),
    "math": frozenset({"cudnn", "flash", "efficient"}),
}
"""The back ends switched off so that a back end comes first, whether or not torch puts cuDNN before flash."""
_CUDNN_FIRST = [3, 1, 2, 0]
"""cuDNN, flash, efficient, math, as `SDPBackend` counts them: torch's own order where it prefers cuDNN."""
_order: list[list[int]] = []
"""Torch's own order, once it has been replaced here."""


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
    others = {name: _by_shape(rows, name) for name in _TOGGLES}
    return dtype, default, {name: own for name, own in others.items() if default and default.keys() <= own.keys()}


def _over(shapes: Shapes, others: Shapes) -> Comparison | None:
    return pooled([shapes[one] for one in others], [*others.values()])


def _slower(shapes: Shapes, others: Shapes) -> int:
    return len(losing({str(shape): (shapes[shape], others[shape]) for shape in others}))


def _first_of_the_fastest(complete: dict[str, Shapes], gains: dict[str, Comparison]) -> str:
    """The first back end, in the order of `_TOGGLES`, over which the fastest does not gain."""
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


def apply(value: str | None) -> None:
    """Put one back end first; None restores torch's own order. Raises ValueError where the program switched some
    itself, or where this torch cannot.
    """
    import torch

    if value is None:
        _switch_off(_off_by_default())
        if _order:
            torch._C._set_sdp_priority_order(_order.pop())
        return
    if current() is None and _off() != _off_by_default():
        raise ValueError("the program has switched back ends of attention itself")
    if value == "cudnn":
        if not hasattr(torch._C, "_set_sdp_priority_order"):
            raise ValueError("this torch cannot try cuDNN before the others: that came with 2.6")
        _switch_off(frozenset())
        if not _cudnn_first():
            _order[:] = [list(torch._C._get_sdp_priority_order())]
        torch._C._set_sdp_priority_order(_CUDNN_FIRST)
        return
    off = _OFF[value] & _toggles()
    if off == _off_by_default():
        raise ValueError(f"this torch tries {value} first by itself")
    _switch_off(off)


def current() -> str | None:
    """None at torch's defaults, and for a mix of switches that is no value of this setting."""
    off = _off()
    if off == _off_by_default():
        return "cudnn" if _cudnn_first() else None
    return next((value for value, others in _OFF.items() if off == others & _toggles()), None)


def default() -> str | None:
    """None; `cudnn` where it comes first already, an order of torch's own that a program cannot set for long."""
    return "cudnn" if current() == "cudnn" else None


def _toggles() -> frozenset[str]:
    import torch

    return frozenset(name for name, theirs in _TOGGLES.items() if hasattr(torch.backends.cuda, f"enable_{theirs}_sdp"))


def _off() -> frozenset[str]:
    import torch

    return frozenset(name for name in _toggles() if not getattr(torch.backends.cuda, f"{_TOGGLES[name]}_sdp_enabled")())


def _off_by_default() -> frozenset[str]:
    """Nothing, except that 2.3 and 2.4 have a switch for cuDNN, which is off."""
    import torch

    old = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 5)
    return frozenset({"cudnn"}) & _toggles() if old else frozenset()


def _switch_off(off: frozenset[str]) -> None:
    import torch

    for name in _toggles():
        getattr(torch.backends.cuda, f"enable_{_TOGGLES[name]}_sdp")(name not in off)


def _cudnn_first() -> bool:
    import torch

    order = getattr(torch._C, "_get_sdp_priority_order", None)
    return order is not None and order()[0] == _CUDNN_FIRST[0]
