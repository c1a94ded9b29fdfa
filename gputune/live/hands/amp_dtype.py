"""Mixed precision: `torch.autocast` around the model's call, and its outputs back in FP32.

The loss, which the program computes from the outputs, runs in FP32. float16 would need a loss scaler around backward
and step, which clipping and accumulating gradients would have to know of; bfloat16, which needs none, takes its place.
"""

from ...knobs import Value
from ..root import Root
from . import Obstacle

IN_CALLS = True
INSTEAD = {"float16": "bfloat16"}


def obstacle(root: Root, value: Value) -> Obstacle | None:
    import torch

    sights = root.sights
    if "autocast" in sights or root.seen.half or root.seen.autocast is not None:
        return Obstacle("the program uses autocast or half precision itself", users=True)
    if "selective checkpointing" in sights:
        return Obstacle("it uses selective checkpointing")
    if root.seen.functions:
        return Obstacle(
            f"{', '.join(root.seen.functions)}: an autograd.Function that may not bear autocast (it lacks custom_fwd)"
        )
    if root.device == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return Obstacle("this device computes in float16 only, which needs a loss scaler in the script")
    return None


def put_in(root: Root, value: Value) -> Value:
    import torch

    # Reentrant checkpointing computes a part without gradients first: casts kept from there would have none.
    root.call.cache = "reentrant checkpointing" not in root.sights
    root.call.dtype = torch.bfloat16
    return INSTEAD["float16"]


def take_out(root: Root) -> None:
    root.call.dtype = None
