"""The key of a model, by which a process recognises a program that was measured before, and the model's kind."""

import gc
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

WRAPPED = ("module", "_orig_mod")
"""The only child of a wrapper: DistributedDataParallel's and DataParallel's, and torch.compile's."""

DIGEST = "[0-9a-f]{16}"
MOST_KINDS = 128
"""The most kinds of layers that a key tells: a ResNet-152 has 27, and 128 take 1.4 KB. Of a model with more only the
class is known to a program with a similar one."""

Identity = tuple[str, str]
"""The class name and the digest of a `ModelKey`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKey:
    """The key by which a program's model is recognised: its class, and a digest of its parameters."""

    class_name: str
    digest: str
    """The first 16 hexadecimal digits of SHA-256 over the names and shapes of the parameters."""
    layers: dict[str, int] = field(default_factory=dict, compare=False)
    """As `layers_of`, by which a similar model is compared with this one; empty where that is not known."""

    def __post_init__(self) -> None:
        if not re.fullmatch(DIGEST, self.digest):
            raise ValueError("a model's digest is 16 hexadecimal digits in lower case")
        if len(self.layers) > MOST_KINDS:
            raise ValueError(f"layers: at most {MOST_KINDS} kinds expected, {len(self.layers)} given")
        if any(not re.fullmatch("[0-9a-f]{4}", kind) or count < 1 for kind, count in self.layers.items()):
            raise ValueError("layers: numbers above 0 by four hexadecimal digits in lower case expected")

    @property
    def identity(self) -> Identity:
        return self.class_name, self.digest


def key(module: Any) -> ModelKey:
    """The key of a module: the same with and without wrappers, and another one until lazy parameters have shapes."""
    from torch.nn.parameter import is_lazy

    model = unwrapped(module)
    shapes = [
        (name, None if is_lazy(parameter) else list(parameter.shape)) for name, parameter in model.named_parameters()
    ]
    text = json.dumps(sorted(shapes, key=lambda one: one[0]), separators=(",", ":"))
    return ModelKey(class_name=type(model).__name__, digest=hashlib.sha256(text.encode()).hexdigest()[:16])


def layers_of(module: Any) -> dict[str, int]:
    """How many layers a module has of each kind: four hexadecimal digits of SHA-256 over the names and shapes of a
    layer's own parameters. Where the layer stands in the model does not matter. Empty for more than `MOST_KINDS` kinds.
    """
    from torch.nn.parameter import is_lazy

    found: Counter[str] = Counter()
    for layer in module.modules():
        own = layer.named_parameters(recurse=False)
        if shapes := [(name, None if is_lazy(one) else list(one.shape)) for name, one in own]:
            found[hashlib.sha256(json.dumps(sorted(shapes)).encode()).hexdigest()[:4]] += 1
    return dict(found) if len(found) <= MOST_KINDS else {}


def existing(class_names: Collection[str]) -> set[Identity]:
    """The models and parts of models with these class names that exist in this process.

    Only the instances of classes with such a name are looked for, by the interpreter itself: 4 ms in a process with
    170,000 objects, 27 ms with a million.
    """
    import torch

    waiting: list[Any] = [torch.nn.Module]
    for one in waiting:
        waiting += one.__subclasses__()
    kinds = {one for one in waiting if one.__name__ in class_names}
    found = set()
    for one in gc.get_referrers(*kinds) if kinds else ():
        if type(one) in kinds:
            with suppress(Exception):  # of a module in the making
                found.add(key(one).identity)
    return found


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
