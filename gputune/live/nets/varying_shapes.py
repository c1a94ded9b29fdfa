"""Shapes that vary cost cuDNN's search for each: it goes off, as `compiling` bounds what they cost the compiler."""

from typing import Any

from .. import flags
from .compiling import signature

MOST = 8
"""Signatures of calls. A last, smaller batch and those of evaluations are fewer."""


class VaryingShapes:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: set[Any] = set()

    def called(self, one: Any, before: Any, output: Any) -> None:
        self._known.add(signature((one.inputs, one.named)))
        if len(self._known) <= MOST and flags.is_ours("cudnn_benchmark", True):
            return
        nets = self._root.call.suspects.nets
        nets[:] = [net for net in nets if net is not self]
        if flags.set_back("cudnn_benchmark", why := f"{self._root.name} is called with more than {MOST} shapes"):
            self._root.say(f"cudnn_benchmark turned off: {why}")
