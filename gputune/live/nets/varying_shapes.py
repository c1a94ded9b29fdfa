"""Shapes that vary cost cuDNN a search, or a kernel in channels_last, for each: both go off.

`compiling` bounds what they cost the compiler. A Faster R-CNN made its first 20 steps in channels_last in 35 s, and in
8 s without.
"""

from typing import Any

from .. import flags
from .compiling import signature

MOST = 4
"""Signatures of calls. A last, smaller batch is one."""


class VaryingShapes:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: set[Any] = set()

    def called(self, one: Any, before: Any, output: Any) -> None:
        self._known.add(signature((one.inputs, one.named)))
        if len(self._known) <= MOST:
            return
        root, why = self._root, f"it is called with more than {MOST} shapes"
        suspects = root.call.suspects
        suspects.nets[:] = [net for net in suspects.nets if net is not self]
        if flags.is_ours("cudnn_benchmark", True) and flags.set_back("cudnn_benchmark", why):
            root.say(f"cudnn_benchmark turned off: {root.name}: {why}")
        if any(suspect.name == "channels_last" for suspect in suspects.on) and not root.is_ddp:
            root.refuse(["channels_last"], why)
