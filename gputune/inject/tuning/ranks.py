"""The place of this process in its job."""

import os
from typing import Any


def place() -> dict[str, Any]:
    """Return its rank, the number of ranks, and how many of them are on this node, as far as anything says so."""
    import torch

    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        rank, world = distributed.get_rank(), distributed.get_world_size()
    else:
        rank, world = _number("RANK", 0), _number("WORLD_SIZE", 1)
    return {"rank": rank, "world": world, "local": _number("LOCAL_WORLD_SIZE", world)}


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise
