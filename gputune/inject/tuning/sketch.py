"""A short linear image of a long tensor: that of a difference is the difference of two images, and tells its norm."""

from typing import Any

SIZE = 64
"""Numbers of an image: the norm is estimated with a standard error of one part in eleven."""
DIGITS = 5
"""How many digits each number of an image has, so that one takes 0.7 KB and thousands fit into a message."""
CHUNK = 1 << 22


def sketch(tensor: Any) -> list[float]:
    """Return `SIZE` sums of the elements with signs that depend on their places alone, each over every `SIZE`-th one.

    No random number is drawn: the signs are bits of a hash of the place.
    """
    import torch

    flat = tensor.detach().reshape(-1)
    sums = torch.zeros(SIZE, dtype=torch.float64, device=flat.device)
    for begin in range(0, flat.numel(), CHUNK):
        part = flat[begin : begin + CHUNK].double()
        signed = part * _signs(begin, part.numel(), flat.device)
        short = -signed.numel() % SIZE
        sums += torch.nn.functional.pad(signed, (0, short)).view(-1, SIZE).sum(0)
    return [float(f"{one:.{DIGITS}g}") for one in sums.tolist()]


def _signs(begin: int, count: int, device: Any) -> Any:
    """+1 or -1 for each place. The hash mixes the bits of 32-bit numbers as Murmur's finaliser does."""
    import torch

    mask = 0xFFFFFFFF
    x = torch.arange(begin, begin + count, device=device, dtype=torch.int64) & mask
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        x = ((x ^ (x >> 15)) * factor) & mask
    return (((x ^ (x >> 16)) & 1) * 2 - 1).double()
