"""Shapes that vary cost cuDNN a search, or kernels in channels_last, for each: both go off.

`compiling` bounds what they cost the compiler. A Faster R-CNN, eight programs at a time on an H200 and 16 CPUs, needed
25 s for each batch with cuDNN's search and channels_last in bfloat16, 9 s with either, and 0.5 s with neither.
"""

from typing import Any

from ...knobs._outputs import tensors
from .. import flags
from ..suspects import Net, OneCall
from .compiling import shape

MOST = 4
"""Shapes of calls: those of training and of evaluation, each with a last, smaller batch."""


class VaryingShapes(Net):
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: set[Any] = set(root.seen.images)
        self._is_first = True

    def calling(self, one: OneCall) -> None:
        """If the first call with settings has another shape than the watched step's, shapes vary from the start."""
        given, known = images((one.inputs, one.named)), self._known
        vary = not one.otherwise and self._is_first and bool(known) and given not in known
        known.add(given)
        self._is_first = self._is_first and one.otherwise
        if not vary and len(known) <= MOST:
            return
        root, why = self._root, "the shapes of its inputs vary"
        suspects = root.call.suspects
        suspects.nets[:] = [net for net in suspects.nets if net is not self]
        if flags.is_ours("cudnn_benchmark", True) and flags.set_back("cudnn_benchmark", why):
            root.say(f"cudnn_benchmark turned off: {why} in {root.name}")
        if any(suspect.name == "channels_last" for suspect in suspects.on) and not root.is_ddp:
            root.refuse(["channels_last"], why)


def images(given: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of what may go through convolutions among a call's inputs: floating-point tensors of three dimensions
    and more, or all if there are none. A detector's images may be of one size, with any number of boxes in them.
    """
    found = list(tensors(given))
    likely = [one for one in found if one.dim() > 2 and one.is_floating_point()]
    return tuple(shape(one) for one in likely or found)
