"""The watch ends what would take the last of the memory, once, and otherwise only looks."""

from collections.abc import Iterator

import pytest
from making import until
from recorded import RecordedHost

from gputune.batch_size.running import MemoryWatch

MIB = 1 << 20


class Shrinking(RecordedHost):
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


@pytest.mark.parametrize(
    ("free", "ended", "left_bytes"),
    [
        ([size * MIB for size in (900, 900, 500, 500, 50, 50, 50, 50)], True, 50 * MIB),
        ([900 * MIB], False, 900 * MIB),
        ([None], False, None),
    ],
    ids=["too little is left", "enough is left", "it cannot be read"],
)
def test_it_ends_once_what_leaves_less_than_100_mib(
    free: list[int | None], ended: bool, left_bytes: int | None
) -> None:
    ends: list[bool] = []
    host = Shrinking(*free)
    with MemoryWatch(host, 100 * MIB, lambda: ends.append(True)) as watch:
        until(lambda: host.count > len(free) or ends)
    assert (watch.ended, ends, watch.left_bytes) == (ended, [True] * ended, left_bytes)
