"""The state of a program before a call of a model, kept so that the call can be undone."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any

from ..knobs._random import set_state, state_of
from .containers import is_as, is_large, put_back
from .held import Held, differs


class Before:
    """The containers, tensors and random states that one call may change. One is made before each call, so containers
    are copied flat, and tensors only on demand.
    """

    __slots__ = (
        "_clones", "_gradients", "_version", "_version_of_weights", "_watched",
        "containers", "deep", "held", "inputs", "sources", "weights",
    )  # fmt: skip

    def __init__(self, inputs: Sequence[Any], containers: list[Any], sources: list[Any], watched: list[Any]) -> None:
        """`containers` are their places, themselves and what is kept of them, and `watched` are tensors."""
        self.inputs, self.containers = inputs, containers
        self.sources = [(one, state_of(one)) for one in sources]
        self._watched, self._version = watched, _versions(watched)
        self._clones: list[tuple[Any, int, Any]] = []
        self.weights: list[Any] | None = None
        self._version_of_weights = 0
        self.held: Held | None = None
        self._gradients: list[tuple[Any, Any, int]] = []
        """Weights, their gradients, and how often these were written to, if everything is kept."""
        self.deep: list[tuple[Any, Any]] = []
        """Containers and arrays that others hold, and what is kept of them."""

    def keep_everything(self, copied: list[Any], weights: list[Any]) -> None:
        """Copy the tensors, too, and those that are `copied`, but not the weights."""
        tensors = [one for one in (*self._watched, *copied) if not one.is_inference()]
        self._clones = [(one, one._version, one.detach().clone()) for one in tensors]
        self.weights, self._version_of_weights = weights, _versions(weights)
        self._gradients = [(one, one.grad, _writes(one.grad)) for one in (*copied, *weights) if one.is_leaf]

    def has_moved(self) -> bool:
        """Whether something has changed that was not copied."""
        buffers = self.weights is None and _versions(self._watched) != self._version
        large = any(isinstance(kept, int) and not is_as(one, kept) for one, kept in self._kept())
        return large or buffers or self.weighs_otherwise() or self.has_other_gradients()

    def _kept(self) -> list[tuple[Any, Any]]:
        return [*self.deep, *((one, kept) for _, one, kept in self.containers)]

    def weighs_otherwise(self) -> bool:
        return self.weights is not None and _versions(self.weights) != self._version_of_weights

    def has_other_gradients(self) -> bool:
        return any(one.grad is not kept or _writes(kept) != writes for one, kept, writes in self._gradients)

    def written(self) -> list[tuple[Any, bool, Any]]:
        """The copied tensors that were written to, whether torch counted that, and the copies."""
        found = [(one, one._version != version, clone) for one, version, clone in self._clones]
        return [(one, counted, clone) for one, counted, clone in found if counted or differs(one, clone)]

    def put_back(self) -> None:
        import torch

        for one, kept in self._kept():
            put_back(one, kept)
        with torch.no_grad():
            for tensor, counted, clone in self.written():
                if (tensor.shape, tensor.dtype) == (clone.shape, clone.dtype):
                    (tensor if counted else tensor.data).copy_(clone)
                else:
                    tensor.data = clone
        for source, state in self.sources:
            set_state(source, state)

    def as_now(self) -> "Before | None":
        """Another `Before` of the same things, kept whole from this moment on, if this one has kept everything. None if
        a large container has another length now, which cannot be undone; from now on this one, too, puts it back whole.
        """
        if any((isinstance(kept, int) or is_large(one)) and not is_as(one, kept) for one, kept in self._kept()):
            return None
        self.containers = [(place, one, _whole(one, kept)) for place, one, kept in self.containers]
        self.deep = [(one, _whole(one, kept)) for one, kept in self.deep]
        containers = [(place, one, one.copy()) for place, one, _ in self.containers]
        now = Before(self.inputs, containers, [one for one, _ in self.sources], [])
        now.keep_everything([one for one, *_ in self._clones], self.weights or [])
        now.deep = [(one, one.copy()) for one, _ in self.deep]
        return now

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Put everything back after what is done meanwhile. To torch it was never written to, since a backward pass of
        the program's may need it.
        """
        from torch.autograd import _unsafe_preserve_version_counter as same_count

        with ExitStack() as counts:
            for one, *_ in self._clones:
                counts.enter_context(same_count(one))
            try:
                yield
            finally:
                self.put_back()


def _whole(one: Any, kept: Any) -> Any:
    return one.copy() if isinstance(kept, int) else kept


def _writes(gradient: Any) -> int:
    return -1 if gradient is None else int(gradient._version)


def _versions(found: Iterable[Any]) -> int:
    """A sum that stays the same only as long as no tensor is written to."""
    try:
        return sum(map(attrgetter("_version"), found))
    except RuntimeError:  # of what inference mode made, such writes are not counted
        return sum(one._version for one in found if not one.is_inference())
