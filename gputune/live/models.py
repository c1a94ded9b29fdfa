"""The key of a model, by which a process recognises a program that was measured before, and the model's kind."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

WRAPPED = ("module", "_orig_mod")
"""The only child of a wrapper: DistributedDataParallel's and DataParallel's, and torch.compile's."""

DIGEST = "[0-9a-f]{16}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKey:
    """The key by which a program's model is recognised: its class, and a digest of its parameters."""

    class_name: str
    digest: str
    """The first 16 hexadecimal digits of SHA-256 over the names and shapes of the parameters."""

    def __post_init__(self) -> None:
        if not re.fullmatch(DIGEST, self.digest):
            raise ValueError("a model's digest is 16 hexadecimal digits in lower case")


def key(module: Any) -> ModelKey:
    """The key of a module: the same with and without wrappers, and another one until lazy parameters have shapes."""
    from torch.nn.parameter import is_lazy

    model = unwrapped(module)
    shapes = [
        (name, None if is_lazy(parameter) else list(parameter.shape)) for name, parameter in model.named_parameters()
    ]
    text = json.dumps(sorted(shapes, key=lambda one: one[0]), separators=(",", ":"))
    return ModelKey(class_name=type(model).__name__, digest=hashlib.sha256(text.encode()).hexdigest()[:16])


def unwrapped(module: Any) -> Any:
    """The model inside wrappers, which have no parameters of their own."""
    while True:
        children = dict(module.named_children())
        if len(children) != 1 or [*module.parameters(recurse=False)]:
            return module
        name, child = children.popitem()
        if name not in WRAPPED:
            return module
        module = child


FAMILIES = ("transformer", "convnet", "recurrent", "mlp")


def family(model: Any) -> str | None:
    """One of `FAMILIES`, or None. Attention outranks convolutions, as in a vision transformer, and those recurrence."""
    import torch

    nn = torch.nn
    layers = list(model.modules())
    attention = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    if any(isinstance(layer, attention) or "Attention" in type(layer).__name__ for layer in layers):
        return "transformer"
    convolutions = (
        nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    )  # fmt: skip
    if any(isinstance(layer, convolutions) and [*layer.parameters(recurse=False)] for layer in layers):
        return "convnet"
    if any(isinstance(layer, nn.RNNBase) for layer in layers):
        return "recurrent"
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    others = [layer for layer in layers if not isinstance(layer, nn.Linear)]
    return "mlp" if linear and not any(one.dim() > 1 for layer in others for one in layer.parameters(False)) else None


def has_images(model: Any) -> bool:
    """Whether a torch.nn.Module has 2-d convolutions."""
    import torch

    return any(isinstance(layer, (torch.nn.Conv2d, torch.nn.ConvTranspose2d)) for layer in model.modules())
