"""Functions of torch and safetensors that flatten weights and gradients, made to bear any layout."""

import functools
from types import ModuleType
from typing import Any

from ..knobs._restored import is_channels_last
from . import imports
from .patches import Function, Undo, replaced, together


def patched() -> Undo:
    from torch import optim
    from torch.nn import init
    from torch.nn.utils import convert_parameters, prune

    imports.after("safetensors.torch", saved, "safetensors saves no model in channels_last")
    made = [_reshaping(convert_parameters.parameters_to_vector), _reshaping(optim.LBFGS._gather_flat_grad)]
    kinds: list[Any] = [prune.L1Unstructured, prune.RandomUnstructured]
    made += [replaced(kind, "compute_mask", _pruned(kind.compute_mask)) for kind in kinds]
    return together([*made, replaced(init, "orthogonal_", _filled(init.orthogonal_))])


def saved(module: ModuleType) -> None:
    """Have safetensors write tensors in channels_last in the usual layout. What shares its memory still does, which
    safetensors refuses.
    """
    name = "_flatten_as_ptr" if hasattr(module, "_flatten_as_ptr") else "_flatten"  # before 0.8
    original = vars(module)[name]

    @functools.wraps(original)
    def flatten(tensors: Any, *rest: Any) -> Any:
        copies: dict[int, Any] = {}

        def usual(one: Any) -> Any:
            if getattr(one, "ndim", 0) != 4 or not is_channels_last(one):
                return one
            return copies.setdefault(one.data_ptr(), one.contiguous())

        given = {key: usual(one) for key, one in tensors.items()} if isinstance(tensors, dict) else tensors
        return original(given, *rest)

    replaced(module, name, flatten)


def _reshaping(function: Any) -> Undo:
    """Have a function that reads `view(-1)` read `reshape(-1)`. It gets other code, since programs import functions by
    their names.
    """
    code = function.__code__
    names = tuple("reshape" if name == "view" else name for name in code.co_names)
    function.__code__ = code.replace(co_names=names)
    return lambda: setattr(function, "__code__", code)


def _pruned(original: Function) -> Function:
    @functools.wraps(original)
    def compute_mask(self: Any, t: Any, default_mask: Any) -> Any:
        return original(self, t.contiguous(), default_mask)

    return compute_mask


def _filled(original: Function) -> Function:
    import torch

    @functools.wraps(original)
    def fill(tensor: Any, *inputs: Any, **named: Any) -> Any:
        if tensor.dim() != 4 or not is_channels_last(tensor):
            return original(tensor, *inputs, **named)
        with torch.no_grad():
            tensor.copy_(original(tensor.detach().contiguous(), *inputs, **named))
        return tensor

    return fill
