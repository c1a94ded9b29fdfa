"""The four reference networks of the training steps, with their data, one for each family of models.

- `mlp`: three Linear layers of one width with ReLU between them and a mean squared error, as in PyTorch's
  mixed-precision recipe (4096 wide, batch 512, plain SGD);
- `convnet`: residual blocks of two 3x3 convolutions with batch normalisation in four stages, as in ResNet-18;
- `transformer`: a decoder with causal attention, GELU and a vocabulary;
- `recurrent`: an LSTM of two layers over tokens.

The data can be learned, so that a loss that does not fall shows a broken precision: the MLP has to repeat a few of its
inputs, the images carry their class as a pattern, and tokens follow Zipf's law.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Batch = tuple[Any, Any]
RATES = {"SGD": 0.001, "AdamW": 1e-4}
"""The learning rates of the timed steps, by optimizer."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a network is, and its batch; each network's builder says what it makes of a field."""

    batch: int
    width: int
    depth: int = 1
    length: int = 1
    """Tokens in a sequence, or pixels on a side."""
    classes: int = 1
    """Words of a vocabulary, or classes of images."""


@dataclass(frozen=True, kw_only=True)
class Network:
    build: Callable[[Size], Any]
    data: Callable[[Size, str, Any], Batch]
    loss: Callable[[Any, Any], Any]
    optimizer: Literal["SGD", "AdamW"]
    guard_rate: float
    """The learning rate with which the loss falls within the steps of the accuracy guard."""
    cuda: Size
    cpu: Size
    images: bool = False
    """Whether its inputs have a memory format."""


def mlp(size: Size) -> Any:
    """`depth` Linear layers, `width` wide."""
    from torch import nn

    layers: list[Any] = []
    for _ in range(size.depth - 1):
        layers += [nn.Linear(size.width, size.width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(size.width, size.width))


def convnet(size: Size) -> Any:
    """Four stages of `depth` residual blocks, from `width` channels to eight times as many."""
    from torch import nn

    def normalised(channels: int, out: int, kernel: int, stride: int) -> list[Any]:
        return [nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out)]

    class Residual(nn.Module):
        def __init__(self, channels: int, out: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(*normalised(channels, out, 3, stride), nn.ReLU(), *normalised(out, out, 3, 1))
            same = channels == out and stride == 1
            self.shortcut = nn.Identity() if same else nn.Sequential(*normalised(channels, out, 1, stride))

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.body(x) + self.shortcut(x))

    layers = [*normalised(3, size.width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = size.width
    for stage in range(4):
        out = size.width << stage
        for block in range(size.depth):
            layers.append(Residual(channels, out, 2 if stage and not block else 1))
            channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, size.classes))


def transformer(size: Size) -> Any:
    """`depth` decoder blocks, `width` wide, with heads of 64, over sequences of up to `length` of `classes` tokens."""
    import torch
    from torch import nn

    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(size.width, 3 * size.width), nn.Linear(size.width, size.width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, -1, 64).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(batch, length, size.width))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.Sequential(nn.LayerNorm(size.width), SelfAttention())
            width, wide = size.width, 4 * size.width
            self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(x)
            return x + self.mlp(x)

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(size.classes, size.width)
            self.places = nn.Embedding(size.length, size.width)
            self.blocks = nn.Sequential(*(Block() for _ in range(size.depth)), nn.LayerNorm(size.width))
            self.words = nn.Linear(size.width, size.classes, bias=False)

        def forward(self, x: Any) -> Any:
            places = torch.arange(x.shape[1], device=x.device)
            return self.words(self.blocks(self.tokens(x) + self.places(places)))

    return Decoder()


def recurrent(size: Size) -> Any:
    """An LSTM of `depth` layers, `width` wide, over sequences of `length` of `classes` tokens."""
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(size.classes, size.width)
            self.lstm = nn.LSTM(size.width, size.width, size.depth, batch_first=True)
            self.words = nn.Linear(size.width, size.classes)

        def forward(self, x: Any) -> Any:
            return self.words(self.lstm(self.tokens(x))[0])

    return Recurrent()


def vectors(size: Size, device: str, generator: Any) -> Batch:
    """Noise with eight loud numbers, and as targets those numbers repeated."""
    import torch

    x = torch.randn(size.batch, size.width, device=device, generator=generator)
    targets = x[:, :8].repeat(1, size.width // 8)
    x[:, :8] *= 16
    return x, targets


def images(size: Size, device: str, generator: Any) -> Batch:
    """Noise on a stripe pattern of the class, and the class."""
    import torch

    labels = torch.randint(size.classes, (size.batch,), device=device, generator=generator)
    x = torch.randn(size.batch, 3, size.length, size.length, device=device, generator=generator)
    phase = torch.arange(size.length, device=device)[None] * (labels[:, None] + 1) * (3.14159 / size.length)
    return x + phase.sin()[:, None, None, :], labels


def words(size: Size, device: str, generator: Any) -> Batch:
    """Tokens whose frequency falls as their number rises, and as targets the next tokens."""
    import torch

    chance = torch.rand(size.batch, size.length + 1, device=device, generator=generator)
    tokens = (size.classes**chance - 1).long().clamp_(0, size.classes - 1)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def squared_error(output: Any, targets: Any) -> Any:
    import torch

    return torch.nn.functional.mse_loss(output, targets)


def cross_entropy(output: Any, targets: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(output.flatten(0, -2), targets.flatten())


NETWORKS = {
    "mlp": Network(
        build=mlp,
        data=vectors,
        loss=squared_error,
        optimizer="SGD",
        guard_rate=1.0,
        cuda=Size(batch=512, width=4096, depth=3),
        cpu=Size(batch=64, width=512, depth=3),
    ),
    "convnet": Network(
        build=convnet,
        data=images,
        loss=cross_entropy,
        optimizer="SGD",
        guard_rate=0.01,
        cuda=Size(batch=1024, width=64, depth=2, length=112, classes=100),
        cpu=Size(batch=8, width=16, depth=1, length=64, classes=10),
        images=True,
    ),
    "transformer": Network(
        build=transformer,
        data=words,
        loss=cross_entropy,
        optimizer="AdamW",
        guard_rate=1e-3,
        cuda=Size(batch=8, width=1024, depth=4, length=1024, classes=16384),
        cpu=Size(batch=2, width=128, depth=2, length=64, classes=512),
    ),
    "recurrent": Network(
        build=recurrent,
        data=words,
        loss=cross_entropy,
        optimizer="AdamW",
        guard_rate=3e-3,
        cuda=Size(batch=128, width=1024, depth=2, length=128, classes=8192),
        cpu=Size(batch=8, width=128, depth=1, length=16, classes=512),
    ),
}
