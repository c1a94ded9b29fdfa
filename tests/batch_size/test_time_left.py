"""What a search for a batch size tells of the time left, held against recorded searches on a clock of their own."""

import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from gputune.batch_size.outlook import batches_to_come, seconds_to_find, tried_again
from gputune.batch_size.request import Request
from gputune.batch_size.running import Runner
from gputune.batch_size.search import _Search
from gputune.batch_size.trials import Trial
from gputune.progress import Progress

MIB = 1 << 20
TWO_CPUS = {1: (69.2, 338), 2: (94.2, 346), 4: (108, 358), 8: (152, 395), 16: (157, 458), 32: (125, 565), 64: (93, 807),
            128: (88, 948), 256: (90, 1536), 512: (90, 2700), 1024: (90, 5000), 2048: (90, 9600)}  # fmt: skip
"""By batch the samples/s and the memory in MiB of a convolutional network, of 23.5 GiB."""
FULL = {batch: (400 * batch / (batch + 8), 600 + 200 * batch) for batch in range(1, 513)}
"""Of a step that fills 23.5 GiB with a batch of 117."""
TINY = {1 << power: (1e4 * 2**power, 100.0) for power in range(17)}
"""Of a step that takes no time and no memory."""


class Recorded(Runner):
    """Trials as they were recorded; those of another batch are those of the next larger one that was."""

    def __init__(self, request: Request, clock: list[float], table: dict[int, Any], total: int = 24064) -> None:
        super().__init__(request=request, device="cpu", host=None, process=SimpleNamespace(kill=self.kill))  # type: ignore[arg-type]
        self.clock, self.table, self.total = clock, table, total
        self.started, self.fresh = clock[0], False

    def kill(self) -> None:
        self.fresh = True

    def try_batch(self, batch: int) -> Trial:
        rate, mib = self.table[min(one for one in self.table if one >= batch)]
        self.clock[0] += 2.1 * batch / rate + 0.12 + 3.0 * self.fresh
        self.fresh = mib > self.total  # a process that was killed starts anew
        if mib > self.total:
            return Trial(batch=batch, fate="no memory")
        self.rate = rate
        return Trial(batch=batch, rate=rate, left_bytes=(self.total - mib) * MIB, total_bytes=self.total * MIB)

    def run(self, batches: Any, seconds: float, **_: Any) -> Any:
        self.clock[0] += seconds
        return [SimpleNamespace(params={"batch": batch}) for batch in batches], None


def told_of(table: dict[int, Any], monkeypatch: pytest.MonkeyPatch, **asked: Any) -> list[tuple[float, float]]:
    """Each time what was told, and how long it then took."""
    clock, seen = [0.0], list[tuple[float, Progress]]()
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    request = Request(make="x:y", **asked)
    runner = Recorded(request, clock, table)
    run = _Search(
        request=request, runner=runner, progress=lambda one: seen.append((clock[0], one)), start_seconds=3.0
    )  # fmt: skip
    run.find()
    run.time()
    run.once_more()
    return [(clock[0], 0.0), *((one.left_seconds or 0.0, clock[0] - then) for then, one in seen)]


@pytest.mark.parametrize("table", [TWO_CPUS, FULL, TINY], ids=["memory for all", "memory ends", "no time at all"])
@pytest.mark.parametrize("seconds", [20.0, 60.0, 300.0])
def test_after_a_fifth_it_is_right_within_a_factor_of_two(
    table: dict[int, Any], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole, _), *told = told_of(table, monkeypatch, seconds=seconds)
    late = [(left, took) for left, took in told if took < 0.8 * whole]
    assert late
    for left, took in late:
        assert took / 2 - 1 <= left <= 2 * took + 1


@pytest.mark.parametrize("table", [TWO_CPUS, FULL, TINY], ids=["memory for all", "memory ends", "no time at all"])
def test_it_does_not_jump_up(table: dict[int, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    (whole, _), *told = told_of(table, monkeypatch, seconds=60.0)
    later = [left for left, took in told if took < 0.8 * whole]
    assert all(after <= 1.25 * before for before, after in pairwise(later))


def test_nothing_is_known_before_the_first_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (left, _), *_ = told_of(TWO_CPUS, monkeypatch, seconds=60.0)
    assert left == pytest.approx(60, rel=0.15)


def trial(batch: int, left: int) -> Trial:
    return Trial(batch=batch, rate=1.0, left_bytes=left, total_bytes=100)


def test_the_batches_to_come_follow_the_line_of_the_memory() -> None:
    come = batches_to_come([trial(1, 90), trial(2, 80)], 1, 1024)
    assert max(come) <= 12
    assert 8 in come


def test_without_growth_they_double_up_to_the_most() -> None:
    assert batches_to_come([trial(1, 90), trial(2, 90)], 1, 40) == [4, 8, 16, 32, 40]


def test_trying_ends_where_one_takes_too_long_or_the_time_does() -> None:
    assert seconds_to_find([1, 2, 4, 8], float, longest=5, left=100) == 7
    assert seconds_to_find([1, 2, 4, 8], float, longest=50, left=6) == 3


def test_what_is_tried_again() -> None:
    assert tried_again([trial(1, 90), trial(8, 20), trial(9, 5)]) == [8, 9]
    assert tried_again([trial(1, 90)]) == [1]
    assert tried_again([]) == []
