"""Sets of CPUs in the kernel's list format (`0-3,8,10-11`), and the name of the processor."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from gputune.host import Host

WORD_BITS = 64


def text(cpus: Iterable[int]) -> str:
    """The shortest list of these CPUs, in ascending order; the empty string for no CPU."""
    ordered = sorted(set(cpus))
    runs = groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])
    parts = [[cpu for _, cpu in run] for _, run in runs]
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def cpus(text: str) -> frozenset[int]:
    """The CPUs in a list. Raises ValueError for text in another format."""
    members: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        members.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(members)


def from_mask(words: Sequence[int]) -> frozenset[int]:
    """The CPUs in a bit mask of 64-bit words, the lowest word first, which is how NVML gives an affinity."""
    return frozenset(
        number * WORD_BITS + bit for number, word in enumerate(words) for bit in range(WORD_BITS) if word >> bit & 1
    )


def model(host: Host) -> str:
    """The processor's name; the machine's architecture if the kernel gives no name, as on Arm."""
    text = host.read("/proc/cpuinfo")
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else host.machine()
