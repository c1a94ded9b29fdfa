"""Features of torch that a program uses itself, noticed by the functions that only such a program passes through."""

import sys
from collections.abc import Callable
from typing import Any

from .patches import Feature, Undo, noted, together

OF_GROUPS = (
    ("distributed_c10d", "_rank_not_in_group"),
    ("_functional_collectives", "_resolve_group"),  # from torch 2.13 on
    ("_functional_collectives", "_resolve_group_name"),
)
"""Functions of torch.distributed through which each collective asks about its group."""


def patched(used: Callable[[Feature, str | None], None]) -> Undo:
    import torch
    from torch.utils import checkpoint

    def entered(context: Any, *_: Any) -> None:
        # During backward, checkpointing enters what the forward pass had, and that may be gputune's.
        if hasattr(context, "by_gputune") or torch._C._current_graph_task_id() != -1:
            return
        # Models switch autocast off for parts of themselves, which is no use of it.
        if getattr(context, "_enabled", True):
            used("autocast", getattr(context, "device", None))

    # Before the backward pass, by its caller's argument: a frame around it would move where warnings of hooks point.
    def beginning(outputs: Any, *_: Any, **__: Any) -> None:
        for feature in _of_backward(outputs, _caller().f_locals.get("create_graph")):
            used(feature, None)

    selective = getattr(checkpoint, "_CachingTorchDispatchMode", None)
    made = [noted(torch.autocast, "__enter__", entered)]
    made += [noted(selective, "__init__", lambda *_, **__: used("selective checkpointing", None))]
    made += [noted(torch.autograd, "_make_grads", beginning)]
    return together([*made, _collective_begun(lambda: used("collectives", None))])


def _collective_begun(begun: Callable[[], None]) -> Undo:
    """Wrap what all collectives, in which ranks wait for each other, ask about their group. The collectives themselves
    may be imported by name, and torch.compile knows them by identity.
    """
    import torch

    def note(*_: Any, **__: Any) -> None:
        if not torch.compiler.is_compiling() and not _caller().f_code.co_name.startswith(("get_", "set_")):
            begun()

    return together([noted(sys.modules.get(f"torch.distributed.{place}"), name, note) for place, name in OF_GROUPS])


def _of_backward(outputs: Any, create_graph: Any) -> list[Feature]:
    """The features of a program that begins a backward pass behind these outputs."""
    import torch

    from .nets.linear_algebra import is_behind
    from .nets.probabilities import takes_logarithms

    features: dict[Feature, bool] = {
        "double backward": bool(create_graph),
        "backward within backward": torch._C._current_graph_task_id() != -1,  # as of reentrant checkpointing
        "linear algebra": is_behind(outputs),
        "logarithms": takes_logarithms(outputs),
    }
    return [feature for feature, is_used in features.items() if is_used]


def _caller() -> Any:
    """The frame of torch's that called a wrapped function, of which there may be several wraps."""
    frame: Any = sys._getframe(2)
    while frame.f_globals.get("__name__") == noted.__module__:
        frame = frame.f_back
    return frame
