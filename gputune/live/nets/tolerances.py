"""A forward that iterates until what it computes is exact enough keeps FP32 matmuls and no mixed precision.

A fixed point that FP32 meets to 1e-4 in 10 rounds stays 6e-4 away in bfloat16, and 2e-5 with factors rounded as TF32
rounds them: such a loop ends at its last round, with a warning or an exception of the program's, or never.

A frame that reads numbers from floating-point tensors at one place, for the second time, is in such a loop. (Another
call of the same function has another frame, so a layer that looks at its input is in none.)
"""

import sys
from collections.abc import Callable, Collection
from typing import Any

from .. import flags
from ..patches import Undo, together

FEATURE = "iterations to a tolerance"
COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__")
READS = ("__bool__", "__float__", "item")


class _Watch:
    def __init__(self, used: Callable[[str], None]) -> None:
        self._used = used
        self._places: set[tuple[Any, int]] = set()
        """Frames, and where in them a number was read."""
        self._compared: set[Any] = set()
        """Frames in which one was compared since the last truth value that was read there."""

    def compared(self, tensor: Any, frame: Any) -> None:
        if tensor.is_floating_point() and _is_in_forward(frame):
            self._compared.add(frame)

    def read(self, tensor: Any, frame: Any) -> None:
        is_number = tensor.is_floating_point() or (str(tensor.dtype) == "torch.bool" and frame in self._compared)
        if not is_number or not _is_in_forward(frame):
            return
        self._compared.discard(frame)
        if (frame, frame.f_lasti) in self._places:
            self._used(tensor.device.type)
        self._places.add((frame, frame.f_lasti))

    def end(self) -> None:
        self._places.clear()
        self._compared.clear()


def watched(used: Callable[[str], None]) -> Undo:
    """Have `used` be called with the type of a tensor's device if a forward reads it in such a loop. The frames of
    forwards that read any are kept until this is undone.
    """
    import torch

    watch = _Watch(used)
    undoing = [_noted(torch.Tensor, name, watch.compared) for name in COMPARISONS]
    undoing += [_noted(torch.Tensor, name, watch.read) for name in READS]
    return together([*undoing, watch.end])


def without_tf32(features: Collection[str], say: Callable[[str], None]) -> None:
    """Turn TF32 off that was on from the start in a program that has such a loop."""
    why = "a forward iterates to a tolerance, which TF32 may never meet"
    if FEATURE in features and flags.is_ours("matmul_precision", "tf32") and flags.set_back("matmul_precision", why):
        say(f"matmul_precision tf32 was turned off: {why}")


def _noted(kind: Any, name: str, note: Callable[[Any, Any], None]) -> Undo:
    """Have `note` called with a tensor and the caller's frame before a method that a tensor inherits."""
    original = getattr(kind, name)
    if name in vars(kind):  # somebody else's
        return lambda: None

    def method(self: Any, *given: Any) -> Any:
        note(self, sys._getframe(1))
        return original(self, *given)

    setattr(kind, name, method)
    return lambda: delattr(kind, name) if vars(kind).get(name) is method else None


def _is_in_forward(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "_call_impl" and frame.f_globals.get("__name__") == "torch.nn.modules.module":
            return True
        frame = frame.f_back
    return False
