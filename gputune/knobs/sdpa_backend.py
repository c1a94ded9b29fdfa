"""The attention back end that torch tries first: `flash`, `efficient`, `cudnn` or `math`; none keeps torch's own order.

torch has an order of back ends and takes the first that accepts the inputs; which one it puts first differs by release
and GPU. The others stay as a fallback: for flash, efficient and math those before it in torch's order are switched off;
cuDNN is put first. cuDNN plans every new sequence length anew, which takes tens of milliseconds: where lengths vary,
flash may serve better than the measured speed says. Where a program switched back ends itself, nothing is changed.

Source: PyTorch, `torch.nn.attention.sdpa_kernel` and `torch.backends.cuda`; ATen's sdp_utils.cpp, in which torch
replaces its order at the first call on a GPU only in order to put cuDNN first.
"""

from typing import Literal

from . import Need, Numerics, Phase, Stage

VALUE = Literal["flash", "efficient", "cudnn", "math"] | None
DEFAULT = None
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
STAGE: Stage = "options"
AFTER = ("fused_optimizer",)
CANDIDATE = "flash"
NEEDS: tuple[Need, ...] = ("gpu", "attention")

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


def apply(value: str | None) -> None:
    """None restores torch's own order. Raises ValueError where the program switched some, or this torch cannot."""
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
