"""Why a setting is not turned on in a model, for each knob."""

from typing import Any

import pytest
import torch
from hands_on import convnet, mlp, rooted
from torch import nn

from gputune.knobs import amp_dtype
from gputune.live.outcome import obstacle
from gputune.live.root import Root

OPTIM = torch.optim
AUTOCAST = "the program uses autocast or half precision itself"
COMPILES = "the program compiles it itself"
CHANGES = (
    "its forward draws from Python's or NumPy's random, or changes a float or a deque, of which torch.compile makes "
    "wrong numbers"
)
TWICE = "the program differentiates gradients (create_graph), which torch.compile does not support"
HOOKS = "it has hooks, which may keep what is made in inference mode"
ONE_DEVICE = "its parameters are not all FP32 on one device"


class Own(torch.optim.AdamW):
    """Steps in its own way, perhaps."""


def compiled(model: Any) -> Any:
    model._compiled_call_impl = lambda x: x
    return model


def replaced(model: Any) -> Any:
    model.forward = lambda x: x
    return model


def hooked() -> Any:
    model = mlp()
    model[0].register_forward_hook(lambda *_: None)
    return model


def answering(model: Any = None, **seen: Any) -> Root:
    return rooted(model or mlp(), gradients=False, **seen)


def trained(kind: Any = OPTIM.AdamW, model: Any = None, **arguments: Any) -> Root:
    model = model or mlp()
    return rooted(model, kind(model.parameters(), **arguments))


def ddp(model: Any) -> Any:
    wrap = type("DistributedDataParallel", (nn.Sequential,), {})()
    wrap.module = model
    return wrap


def watched(model: Any) -> Any:
    model[0].register_full_backward_hook(lambda *gradients: None)
    return model


def mixed_precision_in(model: Any) -> Root:
    root = rooted(model)
    amp_dtype.turn_on(root, "bfloat16")
    return root


def with_sparse_gradients() -> Root:
    model = nn.Embedding(4, 4, sparse=True)
    model(torch.arange(2)).sum().backward()
    return trained(OPTIM.SGD, model)


@pytest.mark.parametrize(
    ("name", "root", "why", "users"),
    [
        ("amp_dtype", rooted(mlp(), features={"autocast"}), AUTOCAST, True),
        ("amp_dtype", rooted(mlp(), half=True), AUTOCAST, True),
        ("amp_dtype", rooted(mlp(), features={"selective checkpointing"}), "it uses selective checkpointing", False),
        ("amp_dtype", rooted(mlp(), without_custom_fwd=["A", "B"]), "A, B: an autograd.Function that", False),
        ("amp_dtype", rooted(nn.LSTM(2, 2), device="cuda"), "torch computes its RNNs in float16, which needs a", False),
        ("amp_dtype", rooted(hooked()), "it has a forward hook, which would get half precision", False),
        ("amp_dtype", rooted(mlp(), keeps="history"), "its calls keep tensors in history, which would be in", False),
        ("amp_dtype", rooted(mlp(), opaque="Actions"), "its output holds an object of the class Actions", False),
        ("amp_dtype", rooted(convnet(), outsized=True), "on a CPU torch's bfloat16 gradients of kernels that", False),
        ("amp_dtype", rooted(mlp()), "no optimizer of torch's has trained it so far, so it may be a loss", False),
        ("channels_last", rooted(mlp()), "it has no 2-d convolutions", False),
        ("channels_last", rooted(nn.Conv1d(3, 3, 3)), "it has no 2-d convolutions", False),
        ("channels_last", rooted(nn.ModuleList([nn.Conv2d(3, 3, 3), nn.Conv3d(3, 3, 3)])), "it has 5-d tensors", False),
        ("channels_last", rooted(convnet().to(memory_format=torch.channels_last)), "its weights or outputs are", True),
        ("channels_last", rooted(ddp(convnet())), "DistributedDataParallel had wrapped it before", False),
        ("channels_last", rooted(convnet(), functions=["A"]), "A: an autograd.Function that may not bear grad", False),
        (
            "channels_last",
            trained(model=convnet(), fused=True),
            "the program gave fused=True, which goes through",
            False,
        ),
        ("channels_last", rooted(watched(convnet())), "it has a backward hook that may not bear gradients", False),
        ("compile", rooted(compiled(mlp())), COMPILES, True),
        ("compile", rooted(nn.Sequential(compiled(mlp()))), COMPILES, True),
        ("compile", rooted(nn.Sequential(type("OptimizedModule", (nn.Sequential,), {})())), COMPILES, True),
        ("compile", mixed_precision_in(compiled(mlp())), COMPILES, True),
        ("compile", rooted(replaced(mlp())), "the forward of Sequential was replaced", False),
        ("compile", rooted(mlp(), features={"selective checkpointing"}), "it uses selective checkpointing", False),
        ("compile", rooted(mlp(), features={"double backward"}), TWICE, False),
        ("compile", rooted(mlp(), changes_numbers=True), CHANGES, False),
        ("compile", rooted(mlp(), hooked=True), "it is called under hooks on what is saved for backward", False),
        ("compile", rooted(mlp(), trains=True), "its forward trains it, so a call that fails", False),
        ("fused_optimizer", rooted(mlp()), "no optimizer of torch's has trained it so far", False),
        ("fused_optimizer", with_sparse_gradients(), "its gradients are sparse", False),
        ("fused_optimizer", trained(Own), "Own is none of torch's Adam, AdamW, SGD", False),
        ("fused_optimizer", trained(OPTIM.RMSprop), "RMSprop is none of torch's Adam, AdamW, SGD", False),
        ("fused_optimizer", trained(OPTIM.Adagrad), "Adagrad is none of torch's Adam, AdamW, SGD", False),
        ("fused_optimizer", trained(fused=True), "the program gave fused=True", True),
        ("fused_optimizer", trained(fused=False), "the program gave fused=False", True),
        ("fused_optimizer", trained(foreach=True), "the program gave foreach=True", True),
        ("fused_optimizer", trained(foreach=False), "the program gave foreach=False", True),
        ("fused_optimizer", trained(capturable=True), "the program gave capturable=True", True),
        ("fused_optimizer", trained(model=mlp().double()), ONE_DEVICE, False),
        ("fused_optimizer", trained(model=mlp().to("meta")), ONE_DEVICE, False),
        ("inference_mode", rooted(mlp()), "the program computes gradients", False),
        ("inference_mode", answering(inference=True), "the program uses inference mode itself", True),
        ("inference_mode", answering(hooked()), HOOKS, False),
        ("inference_mode", answering(opaque="DynamicCache"), "it returns a DynamicCache, which cannot be", False),
    ],
)
def test_what_keeps_a_setting_out(name: str, root: Root, why: str, users: bool) -> None:
    row = obstacle(root, name, True)
    assert row is not None
    assert row.why.startswith(why)
    assert (row.status == "kept-user") is users
