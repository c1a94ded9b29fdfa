"""Sets of CPUs as the kernel writes them: `0-3,8,10-11`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

WORD_BITS = 64


def text(cpus: Iterable[int]) -> str:
    """The shortest list, ascending; empty for none."""
    ordered = sorted(set(cpus))
    runs = groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])
    parts = [[cpu for _, cpu in run] for _, run in runs]
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def cpus(text: str) -> frozenset[int]:
    """The CPUs of such a list. Raises ValueError for anything else."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        found.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(found)


def of_mask(words: Sequence[int]) -> frozenset[int]:
    """The CPUs of a bit mask in words of 64 bits, the lowest first, as NVML tells an affinity."""
    return frozenset(
        number * WORD_BITS + bit for number, word in enumerate(words) for bit in range(WORD_BITS) if word >> bit & 1
    )
