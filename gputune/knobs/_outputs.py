"""A model's outputs, as they would be without mixed precision, channels_last and inference mode."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any


def restored(output: Any, half: Any, contiguous: bool = False) -> Any:
    """The output with tensors of the dtype `half` in FP32 and, if `contiguous`, in torch's usual layout."""
    import torch

    def restore(tensor: Any) -> Any:
        dtype = torch.float32 if tensor.dtype == half else tensor.dtype
        if contiguous and tensor.dim() == 4 and is_channels_last(tensor):
            return tensor.to(dtype=dtype, memory_format=torch.contiguous_format)
        return tensor.to(dtype)

    return changed(output, restore)


def usual(output: Any) -> Any:
    """The output with copies of the tensors that were made in inference mode, which the program may use as it likes."""
    return changed(output, lambda tensor: tensor.clone() if tensor.is_inference() else tensor)


def changed(output: Any, change: Callable[[Any], Any]) -> Any:
    """The output with every tensor changed, at any depth of tuples, lists, mappings and dataclasses. What holds none
    that becomes another one is returned as it is.

    Types are kept: named tuples, and subclasses of dict such as the outputs of transformers.
    """
    import torch

    if isinstance(output, torch.Tensor):
        return change(output)
    if isinstance(output, tuple):
        found = [changed(one, change) for one in output]
        if _same(found, output):
            return output
        return type(output)(*found) if hasattr(output, "_fields") else type(output)(found)
    items = list(_items(output))
    new = [(key, changed(one, change)) for key, one in items]
    if _same([one for _, one in new], [one for _, one in items]):
        return output
    copied = copy.copy(output)
    for key, one in new:
        if isinstance(output, dict | list):
            copied[key] = one
        else:
            object.__setattr__(copied, key, one)
    return copied


def tensors(output: Any) -> Iterator[Any]:
    """Every tensor in an output, or among the inputs of a call."""
    import torch

    if isinstance(output, torch.Tensor):
        yield output
    else:
        for one in output if isinstance(output, tuple) else (one for _, one in _items(output)):
            yield from tensors(one)


def opaque(output: Any) -> str | None:
    """The class of something in an output that may hold tensors and is none of what is looked into; None without."""
    import torch

    if output is None or isinstance(output, torch.Tensor | bool | int | float | complex | str | bytes):
        return None
    inside = list(output) if isinstance(output, tuple) else [one for _, one in _items(output)]
    if not inside and not isinstance(output, tuple | list | dict):
        return type(output).__name__
    return next(filter(None, map(opaque, inside)), None)


def is_channels_last(tensor: Any) -> bool:
    """Whether a 4-d tensor's layout is channels_last and could not be the usual one as well."""
    import torch

    return not tensor.is_contiguous() and bool(tensor.is_contiguous(memory_format=torch.channels_last))


def _items(output: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(output, dict):
        yield from output.items()
    elif isinstance(output, list):
        yield from enumerate(output)
    elif is_dataclass(output) and not isinstance(output, type):
        yield from ((field.name, getattr(output, field.name, None)) for field in fields(output))


def _same(one: Any, other: Any) -> bool:
    return all(left is right for left, right in zip(one, other, strict=True))
