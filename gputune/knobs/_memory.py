"""Who else uses a tensor's memory: what is given other memory is lost to them."""

from collections.abc import Iterable
from typing import Any, Literal


def other_users(tensors: Iterable[Any], what: Literal["weights", "gradients"]) -> str | None:
    """The other user, in words, of memory that one of a model's weights or gradients lies in; None if each has its
    memory to itself. Two weights that share memory are users of each other's.
    """
    import torch

    count = getattr(torch._C, "_storage_Use_Count", None)
    if count is None:
        return f"this torch cannot tell what else uses the memory of its {what}"

    def uses(one: Any) -> int:
        storage = one.untyped_storage()
        return int(count(storage._cdata))

    alone = uses(torch.empty(1))
    for one in tensors:
        storage = one.untyped_storage()
        if storage.is_shared() and one.device.type == "cpu":  # all memory of a GPU says that it is
            return f"other processes may share the memory of its {what}"
        if storage.nbytes() != one.numel() * one.element_size():
            return f"one of its {what} is part of a larger tensor"
        del storage
        if uses(one) > alone:
            return f"another tensor or array shares the memory of one of its {what}"
    return None
