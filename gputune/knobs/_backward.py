"""Whether the backward pass of a compiled graph may run after the graph has run again.

With spectral normalisation a discriminator of a GAN changes its buffers in each call, and is called twice before the
backward pass. Uncompiled code keeps copies of the buffers for that; a compiled graph may keep themselves.
"""

from collections.abc import Sequence
from typing import Any


class BackwardFailed(RuntimeError):
    """The backward pass of a compiled call fails, or would not do what an uncompiled one does."""

    setting: str | None = None
    """The one that is to blame, if that is known."""


class Changes:
    """Finds in the first real call of a graph which of its inputs and buffers it changes."""

    def __init__(self, buffers: Sequence[Any]) -> None:
        self._buffers, self._are_known = buffers, False

    def before(self, inputs: Sequence[Any]) -> list[tuple[Any, int]]:
        """The tensors that a call may change, each with the count of how often it was written to; none once that is
        known.
        """
        import torch
        from torch._subclasses import FakeTensor

        if self._are_known or any(isinstance(one, FakeTensor) for one in inputs):
            return []
        tensors = [one for one in (*self._buffers, *inputs) if isinstance(one, torch.Tensor)]
        return [(one, one._version) for one in tensors if not one.is_inference()]

    def check(self, versions: Sequence[tuple[Any, int]], node: Any) -> None:
        """Raise BackwardFailed if the backward pass `node` of a call needs what the next call changes."""
        places = {one.data_ptr() for one, version in versions if one._version != version and one.numel()}
        if places and any(one is not None and one.data_ptr() in places for one in node.saved_tensors):
            error = BackwardFailed("its backward pass needs buffers that its next call changes")
            error.setting = "compile"
            raise error
        self._are_known |= bool(versions)
