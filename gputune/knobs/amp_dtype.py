"""The dtype of automatic mixed precision: `bfloat16`, `float16` or none.

`torch.autocast` runs matmuls and convolutions in the named dtype, losses and other operations that need the precision
in FP32, and all others in the dtype of their inputs. Weights stay in FP32. bfloat16 has FP32's range and needs nothing
else; float16 overflows at 65504 and its gradients vanish below 6e-8, so a GradScaler belongs with it:
`Tuning.grad_scaler()` is enabled for float16 only. Below compute capability 8.0 torch emulates bfloat16 slowly, so
float16 is the choice there. The gain differs by kind of network: casting costs time too, so a small network may lose.
Mixed precision changes results, so it is never applied behind the user's back: it takes a line in the training script,
a tune of it, or `gputune apply --numerics mixed`, which turns bfloat16 on in an unchanged one.

Source: PyTorch, "Automatic Mixed Precision" recipe.
"""

from typing import Any, Literal

from . import Limits, Need, Numerics, Obstacle, Phase, Root, Stage, Value, _line_search

VALUE = Literal["bfloat16", "float16"] | None
DEFAULT = None
PHASE: Phase = "code"
USE = "with tuning.autocast():"
NUMERICS: Numerics = "mixed"
DEPENDS = ("device", "compute_capability")
STAGE: Stage = "precision"
CANDIDATE = "bfloat16"
NEEDS: tuple[Need, ...] = ("bfloat16",)
PRECISION_LIMITS = Limits(loss=0.02, gradients=0.50, along=0.10, parameter=0.75, outputs=0.05)
IN_CALLS = True
FAULTS = (
    r"dtype|scalar ?type|bfloat16|is_floating_point|not implemented for|autocast|cudnn|cublas|find an engine|overflow"
)
INSTEAD = {"float16": "bfloat16"}


def obstacle(root: Root, value: Value) -> Obstacle | None:
    if "autocast" in root.features or root.seen.half or root.seen.autocast is not None:
        return Obstacle("the program uses autocast or half precision itself", users=True)
    why = next((why for why, is_so in _reasons(root).items() if is_so), None)
    return Obstacle(why) if why else None


def _reasons(root: Root) -> dict[str, object]:
    """Why a model may not bear mixed precision, and whether it is so."""
    import torch

    seen = root.seen
    # They are cast to float16 whatever autocast's dtype is.
    has_rnns = root.device == "cuda" and any(isinstance(one, torch.nn.RNNBase) for one in root.model.modules())
    has_bfloat16 = root.device != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    functions = ", ".join(seen.without_custom_fwd)
    # A cache of keys and values is for the model itself.
    hidden = seen.opaque and not seen.opaque.endswith("Cache")
    return {
        "the loss factorises matrices, which half precision would change": "linear algebra" in root.features,
        "the loss takes logarithms of its sigmoids, which half precision rounds to 0 and 1": seen.sigmoids
        and "logarithms" in root.features,
        "it uses selective checkpointing": "selective checkpointing" in root.features,
        f"{functions}: an autograd.Function that may not bear autocast (it lacks custom_fwd)": functions,
        "torch computes its RNNs in float16, which needs a loss scaler in the script": has_rnns,
        "it has a forward hook, which would get half precision": any(map(is_hooked, root.model.modules())),
        "it has a backward hook, which would get half precision": any(map(has_backward_hook, root.model.modules())),
        "its forward puts hooks on activations, which would get half precision": "hooks on activations"
        in root.features,
        f"its calls keep tensors in {seen.keeps}, which would be in half precision there": seen.keeps,
        f"its output holds an object of the class {seen.opaque}, whose tensors would be in half precision": hidden,
        # Seen with torch 2.4 to 2.14 on CPUs that compute in bfloat16: they are memory that nothing was written to.
        "on a CPU torch's bfloat16 gradients of kernels that are larger than their inputs are wrong": seen.outsized,
        "this device computes in float16 only, which needs a loss scaler in the script": not has_bfloat16,
        # A frozen network, or a loss, whose digits count: the mean of squares less the square of the mean, of pixels.
        "no optimizer of torch's has trained it so far, so it may be a loss": not root.is_trained,
    }


def is_hooked(module: Any) -> bool:
    """Whether the program has a hook on a module's calls, which torch itself has for its parametrizations as well."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return any(not str(getattr(one, "__module__", "")).startswith("torch.") for one in hooks)


def has_backward_hook(module: Any) -> bool:
    return bool(module._backward_hooks or module._backward_pre_hooks)


def turn_on(root: Root, value: Value) -> Value:
    """Autocast around the model's call, and its outputs back in FP32, so that the program's own loss runs in FP32.
    float16 would need a loss scaler around backward and step, which clipping and accumulating gradients would have to
    know of.
    """
    import torch

    # Reentrant checkpointing computes a part without gradients first: casts kept from there would have none.
    # A cast is stale once its weight is written to within the call.
    root.call.cache = "backward within backward" not in root.features and not root.seen.changes_weights
    _line_search.watch()
    root.call.dtype, root.call.computed = torch.bfloat16, root.kept
    return INSTEAD["float16"]


def turn_off(root: Root) -> None:
    root.call.dtype = None
