"""The watch ends what would take the last of the memory, once, and otherwise only looks."""

import time
from collections.abc import Iterator

from recorded import RecordedHost

from gputune.batch_size.memory_watch import MemoryWatch

MIB = 1 << 20


class Shrinking(RecordedHost):
    """A host whose free memory is lower at each look."""

    def __init__(self, *free: int | None) -> None:
        super().__init__("cpu-only")
        self.looks: Iterator[int | None] = iter(free)
        self.count = 0
        self.last: int | None = None

    def read(self, path: str) -> str:
        if path != "/proc/meminfo":
            return super().read(path)
        self.last = next(self.looks, self.last)
        self.count += 1
        return (
            f"MemTotal: 1000000 kB\nMemAvailable: {(self.last or 0) // 1024} kB\n"
            if self.last is not None
            else "nothing\n"
        )


def watched(*free: int | None, least: int = 100 * MIB) -> tuple[MemoryWatch, list[bool]]:
    ends: list[bool] = []
    host = Shrinking(*free)
    with MemoryWatch(host, least, lambda: ends.append(True)) as watch:
        while host.count <= len(free) and not ends:
            time.sleep(0.01)
    return watch, ends


def test_it_ends_what_leaves_too_little() -> None:
    watch, ends = watched(*[size * MIB for size in (900, 900, 500, 500, 50, 50, 50, 50)])
    assert (watch.ended, ends) == (True, [True])
    assert watch.left_bytes == 50 * MIB


def test_it_leaves_alone_what_leaves_enough() -> None:
    watch, ends = watched(900 * MIB)
    assert (watch.ended, ends, watch.left_bytes) == (False, [], 900 * MIB)


def test_what_cannot_be_read_ends_nothing() -> None:
    watch, ends = watched(None)
    assert (watch.ended, ends, watch.left_bytes) == (False, [], None)
