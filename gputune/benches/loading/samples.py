"""The synthetic datasets: samples that cost CPU time, slices of memory, samples waited for, and large images."""

import time
from typing import Any

TRANSFER_SHAPE = (3, 224, 224)
WAIT_SECONDS = 0.002


class Synthetic:
    """A map-style dataset, longer than any bench reads."""

    def __len__(self) -> int:
        return 1 << 30


class Decoding(Synthetic):
    """Samples that cost a few milliseconds of one CPU: scaling a synthetic 512x512 image down."""

    def __init__(self) -> None:
        import torch

        self.image = torch.randint(0, 256, (3, 512, 512), dtype=torch.uint8)

    def __getitem__(self, index: int) -> Any:
        import torch

        image = self.image.roll(index % 512, dims=2).float()[None]
        small = torch.nn.functional.interpolate(image, size=(96, 96), mode="bicubic", antialias=True)
        return small[0].clamp_(0, 255).to(torch.uint8)


class Tokens(Synthetic):
    """Samples that are slices of memory."""

    def __init__(self) -> None:
        import torch

        self.tokens = torch.randint(0, 50257, (1 << 20,), dtype=torch.int32)

    def __getitem__(self, index: int) -> Any:
        start = (index * 977) % (self.tokens.numel() - 512)
        return self.tokens[start : start + 512]


class Waiting(Tokens):
    """Slices of memory that each take a moment to arrive, as from an object store."""

    def __getitem__(self, index: int) -> Any:
        time.sleep(WAIT_SECONDS)
        return super().__getitem__(index)


class Images(Synthetic):
    """Ready FP32 images, large enough that copying them to a GPU takes time."""

    def __init__(self) -> None:
        import torch

        self.image = torch.randn(TRANSFER_SHAPE)

    def __getitem__(self, index: int) -> Any:
        return self.image
