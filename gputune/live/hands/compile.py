"""torch.compile in place, for the model inside DistributedDataParallel: torch then splits it at the wrap's buckets."""

from typing import Any

from ...knobs import Value
from ..call import Call
from ..compiled import compiled_call
from ..root import Root
from . import Obstacle

IN_CALLS = True


def obstacle(root: Root, value: Value) -> Obstacle | None:
    import torch

    if any(_is_compiled(module) for module in root.model.modules()):
        return Obstacle("the program compiles it itself", users=True)
    if isinstance(root.inner, torch.fx.GraphModule) or "forward" in vars(root.inner):
        return Obstacle(f"the forward of {root.name} was replaced")
    if "selective checkpointing" in root.sights:
        return Obstacle("it uses selective checkpointing")
    if "double backward" in root.sights:
        return Obstacle("the program differentiates gradients (create_graph), which torch.compile does not support")
    return None


def put_in(root: Root, value: Value) -> Value:
    from torch._functorch import config

    if hasattr(config, "backward_pass_autocast"):
        # Otherwise the backward pass would be traced under the call's autocast.
        config.backward_pass_autocast = "off"  # noqa: S105 - no password
    if hasattr(config, "donated_buffer"):
        config.donated_buffer = False  # with it, backward(retain_graph=True) raises
    _tell_caches_apart(root)
    call = root.inner_call
    # What is put back on trial, after a call that failed, must be rehearsed anew.
    if call.dtype not in root.compiled or not root.in_turn:
        root.compiled[call.dtype] = compiled_call(
            root.inner,
            lambda why: root.failed("compile", f"torch.compile failed: {why}"),
            in_float32=call.dtype is not None,  # of this model's own call, not of the wrap's
            # torch refuses to run reentrant checkpointing outside Tensor.backward.
            rehearse_on=None if "reentrant checkpointing" in root.sights or not root.gradients else root.device,
        )
    call.compiled = root.compiled[call.dtype]
    return True


def take_out(root: Root) -> None:
    root.inner_call.compiled = None


def _tell_caches_apart(root: Root) -> None:
    """The cache on disk of torch 2.8 to 2.11, at least, takes a graph compiled under one dtype for another's."""
    import torch.compiler

    dtype = root.call.dtype or root.seen.autocast
    settings = getattr(torch.compiler, "config", None)
    if dtype is not None and getattr(settings, "cache_key_tag", None) == "":
        settings.cache_key_tag = f"autocast {dtype}"  # type: ignore[union-attr]  # getattr found it, so it is there


def _is_compiled(module: Any) -> bool:
    call = module._compiled_call_impl
    by_user = call.users if isinstance(call, Call) else call
    return by_user is not None or type(module).__name__ == "OptimizedModule"
