"""TF32 goes off in a program whose iterations take longer with it."""

import importlib
from collections.abc import Iterator

import pytest
import torch
from hands_on import capture, unfollowed

from gputune.live import flags, hook
from gputune.live.nets import later_settings, slower_tf32
from gputune.live.nets.slower_tf32 import CERTAIN, FEW, PAIRS, WARM, is_slower, is_without

BEHIND = 5
ALL = WARM + 2 * PAIRS
HAS_TF32 = [True] * WARM + [not is_without(number) for number in range(2 * PAIRS)]


@pytest.fixture(autouse=True)
def tf32(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(flags, "rows", {})
    monkeypatch.setattr(flags, "_ours", {})
    monkeypatch.setattr(later_settings, "_flags", {})
    monkeypatch.setattr(Clock, "now", 0)
    monkeypatch.setattr(slower_tf32, "graphs", lambda: 0)
    monkeypatch.setattr(slower_tf32, "_begun", [])
    flags.set_now("matmul_precision", "tf32")
    with unfollowed():
        slower_tf32.watch()
        yield
        slower_tf32.leave()
    torch.set_float32_matmul_precision(before)


class Clock:
    """Knows how long an iteration takes with TF32 and without; the GPU is `BEHIND` iterations behind."""

    seconds_with, seconds_without, now = 0.004, 0.002, 0

    def __init__(self) -> None:
        self._taken = self.seconds_with if has_tf32() else self.seconds_without
        self._known = Clock.now + 1 + BEHIND

    def stop(self) -> None:
        """It knows already."""

    def seconds(self) -> float | None:
        return self._taken if Clock.now >= self._known else None


def has_tf32() -> bool:
    return torch.get_float32_matmul_precision() == "high"


def trained(steps: int) -> list[bool]:
    """Whether TF32 was on in each of a program's iterations."""
    weight = torch.nn.Parameter(torch.ones(()))
    optimizer, had = torch.optim.SGD([weight], lr=0.1), []
    for _ in range(steps):
        had.append(has_tf32())
        Clock.now += 1
        weight.grad = torch.ones(())
        optimizer.step()
    return had


def test_it_goes_off_and_one_line_has_both_figures(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slower_tf32, "Clock", Clock)
    assert trained(ALL + BEHIND + 2) == [*HAS_TF32, *[True] * BEHIND, False, False]
    assert flags.rows["matmul_precision"].status == "skipped"
    line = "gputune: matmul_precision tf32 was turned off: a step takes 4 ms with it, and 2 ms without\n"
    assert capfd.readouterr().err == line


def test_many_times_as_long_is_enough_in_a_few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slower_tf32, "Clock", Clock)
    monkeypatch.setattr(Clock, "seconds_with", 0.02)
    timed = WARM + 2 * FEW + BEHIND
    assert trained(timed + 9) == [*HAS_TF32[:timed], *[False] * 9]


def test_one_iteration_in_five_may_have_been_disturbed() -> None:
    assert is_slower([(2, 1)] * CERTAIN + [(1, 2)] * (PAIRS - CERTAIN))
    assert not is_slower([(2, 1)] * (CERTAIN - 1) + [(1, 2)] * (PAIRS - CERTAIN + 1))


@pytest.mark.parametrize("with_it", [0.001, 0.002, 0.0021])
def test_it_stays_where_it_is_hardly_slower_and_the_same_iterations_are_timed_in_every_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], with_it: float
) -> None:
    monkeypatch.setattr(slower_tf32, "Clock", Clock)
    monkeypatch.setattr(Clock, "seconds_with", with_it)
    assert trained(ALL + BEHIND + 2) == [*HAS_TF32, *[True] * (BEHIND + 2)]
    assert capfd.readouterr().err == ""


def test_by_its_own_clock_it_stays_too() -> None:
    assert trained(ALL + 3) == [*HAS_TF32, *[True] * 3]


def test_work_for_every_second_step_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Uneven(Clock):
        seconds_with = seconds_without = 0.002

        def __init__(self) -> None:
            super().__init__()
            self._taken *= 10 if Clock.now % 2 else 1

    monkeypatch.setattr(slower_tf32, "Clock", Uneven)
    assert trained(ALL + BEHIND + 2)[-2:] == [True, True]


WITHOUT = WARM + next(filter(is_without, range(PAIRS)))
"""The number of the first iteration without TF32."""


@pytest.mark.parametrize("by", ["the program", "a net"])
def test_what_is_set_in_an_iteration_without_it_stays(by: str) -> None:
    trained(WITHOUT)
    assert not has_tf32()
    if by == "a net":
        flags.set_back("matmul_precision", "the loss factorises matrices")
    else:
        torch.set_float32_matmul_precision("highest")
    assert not any(trained(ALL))


def test_it_counts_as_applied_meanwhile() -> None:
    trained(WITHOUT)
    row = next(one for one in hook.now() if one["setting"] == "matmul_precision")
    assert (row["status"], row["after"], has_tf32()) == ("applied", "tf32", False)


def test_a_program_that_captures_a_graph_has_it_on() -> None:
    trained(WITHOUT)
    capture()
    assert all(trained(ALL))


def test_a_program_that_compiles_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slower_tf32, "graphs", lambda: 1)
    importlib.import_module("torch._dynamo")
    assert all(trained(ALL))


def test_deterministic_algorithms_keep_every_iteration_alike() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert all(trained(ALL))
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_value_of_the_programs_own_stays() -> None:
    trained(WARM + 2)
    torch.set_float32_matmul_precision("medium")
    trained(ALL)
    assert torch.get_float32_matmul_precision() == "medium"
