"""A backward pass that is tried before the program's own: a call can be made again, a backward pass cannot."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...knobs._backward import BackwardFailed
from ...knobs._outputs import nodes_behind, tensors
from ...knobs._random import common_sources, put_back_after
from ..containers import CONTAINERS, copy_of, elements, put_back
from ..states import States
from ..suspects import Net
from ..unheard import unheard


def rehearse(model: Any, given: Any, output: Any, device: str) -> None:
    """Run the backward pass behind an output of a model's, with gradients of zero that go nowhere, and put back the
    random numbers that it draws, what an autograd.Function of the program's keeps for its own pass, and what such a
    pass changes in the model. `given` are the inputs of the call.

    Raises BackwardFailed if it fails. If all of the output comes from one compiled graph, also if a gradient is no
    number: compiled code makes zeros behind outputs that a loss leaves out, and an infinite derivative makes NaN of
    them in what these share with others. Nothing is run if hooks of the program's would be called: for a model with
    backward hooks, for weights with hooks, and for inputs that are made with the model's own weights. Nothing is known
    if memory does not suffice.
    """
    import torch

    if torch.is_anomaly_enabled() or any(one._backward_hooks or one._backward_pre_hooks for one in model.modules()):
        return
    weights = [one for one in model.parameters() if one.requires_grad and not one._backward_hooks]
    outputs = [one for one in tensors(output) if one.requires_grad and one.grad_fn is not None]
    if not weights or not outputs or any(map(_has_hooks, outputs)) or _are_behind(weights, given):
        return
    zeros = [torch.zeros_like(one) for one in outputs]
    try:
        with torch.autocast(device, enabled=False), _undone(model, outputs, device), unheard():
            found = torch.autograd.grad(outputs, weights, zeros, retain_graph=True, allow_unused=True)
    except torch.cuda.OutOfMemoryError:
        return
    except Exception as error:
        raise BackwardFailed(f"in its backward pass: {type(error).__name__}: {error}") from error
    strided = [one for one in found if one is not None and one.layout == torch.strided]
    if all(map(_is_compiled, outputs)) and not all(bool(one.isfinite().all()) for one in strided):
        raise BackwardFailed("in its backward pass: gradients of zero become NaN behind an infinite derivative")


@contextmanager
def _undone(model: Any, outputs: list[Any], device: str) -> Iterator[None]:
    """Put back what the backward pass behind these outputs changes."""
    nodes = [one for one in nodes_behind(outputs) if hasattr(one, "_forward_cls")]
    holders = [one for node in nodes for one in (vars(node), *elements(vars(node))) if type(one) in CONTAINERS]
    kept = [(one, copy_of(one)) for one in holders]
    is_own = any(not str(node._forward_cls.__module__).startswith("torch.") for node in nodes)
    before = States(lambda: model, device).before_call(()) if is_own else None
    with before.undone() if before else put_back_after(common_sources(model.parameters(), device)):
        try:
            yield
        finally:
            for one, copy in kept:
                put_back(one, copy)


def _are_behind(weights: list[Any], given: Any) -> bool:
    own = set(map(id, weights))
    nodes = nodes_behind([one for one in tensors(given) if one.requires_grad])
    return any(id(getattr(one, "variable", None)) in own for one in nodes)


def _base(output: Any) -> Any:
    return output._base if output._is_view() else output


def _has_hooks(output: Any) -> bool:
    return bool(output._backward_hooks or _base(output)._backward_hooks)


def _is_compiled(output: Any) -> bool:
    return type(_base(output).grad_fn).__name__ == "CompiledFunctionBackward"


class Rehearsal(Net):
    """Rehearses the backward pass of the first call with each combination of settings."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: set[frozenset[str]] = set()

    def called(self, one: Any, before: Any, output: Any) -> None:
        on = frozenset(suspect.name for suspect in self._root.call.suspects.on)
        if on not in self._known and self._root.rehearse:
            self._root.rehearse((one.inputs, one.named), output)
            self._known.add(on)
