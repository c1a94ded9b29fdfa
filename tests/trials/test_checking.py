"""The runs of the guard, and the parts of a tune as they are counted."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trials.test_guard import FP32, output

from gputune.live.advice import Advice
from gputune.live.records import Recorded
from gputune.progress import READING, Progress
from gputune.search.combination import Combination
from gputune.trials import checking
from gputune.trials.checking import GuardRuns, Timed, confirm
from gputune.trials.failure import How, RunFailed
from gputune.trials.progress import CONFIRMING, GUARDING, MEASURING, TuneProgress
from gputune.trials.start import Start

HALF, FUSED = Combination.of({"amp_dtype": "bfloat16"}), Combination.of({"fused_optimizer": True})
ADVICE = Advice(device="cpu")


class Made(GuardRuns):
    def __init__(self, tuned: Recorded, tuned_only: dict[str, Any] | None = None, **changed: Any) -> None:
        """`changed` in all runs, and `tuned_only` in those with the settings."""
        start = Start(command=("true",), environ={}, folder=Path(), log=None)  # type: ignore[arg-type]  # never started
        super().__init__(start=start, steps=53, told=TuneProgress(tell=lambda _: None))
        self.started: list[tuple[bool, int]] = []
        self.tuned, self.tuned_only, self.changed = tuned, tuned_only or {}, changed

    def _recorded(self, advice: Advice | None, shift: int, **more: Any) -> Recorded:
        self.started.append((advice is not None, shift))
        if advice is None:
            return replace(FP32[shift], **self.changed)
        return replace(self.tuned, **{"losses": FP32[shift].losses, **self.changed, **self.tuned_only})


def test_fp32_runs_once_for_all_combinations() -> None:
    runs = Made(FP32[0])
    assert runs.of(HALF, ADVICE).verdict == "accepted"
    assert runs.started == [(False, 0), (False, 1), (False, 2), (True, 0), (True, 1)]
    runs.of(FUSED, ADVICE)
    assert runs.started[5:] == [(True, 0), (True, 1)]


SEEN: dict[str, Any] = {"outputs": (output(),), "evaluates": True}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        (
            {"unchecked": ("the optimizer's step was not compared (Lion)",)},
            "the optimizer's step was not compared (Lion)",
        ),
        ({"outputs": ()}, "no output of a model was seen"),
        ({"evaluates": False}, "no evaluation ran within 53 steps"),
    ],
)
def test_what_the_guard_did_not_see_is_said_once(changed: dict[str, Any], said: str) -> None:
    given = {**SEEN, **changed}
    found = Made(FP32[0], **given).of(HALF, ADVICE)
    assert found.verdict == "accepted"
    assert found.reason == "; ".join(["loss within FP32's own spread", *([said] if said else [])])


def test_a_refusal_says_nothing_else() -> None:
    made = Made(FP32[0], tuned_only={"losses": (math.nan,) * 53})
    assert made.of(HALF, ADVICE).reason == "its loss is no number from step 1 on"


@pytest.mark.parametrize("how", ["late", "never stepped"])
def test_where_the_time_is_over_nothing_is_known_of_the_loss(how: How) -> None:
    class Late(Made):
        def _recorded(self, advice: Any, shift: int, **more: Any) -> Recorded:
            raise RunFailed(how=how)

    guard = Late(FP32[0]).of(HALF, ADVICE)
    assert (guard.verdict, guard.reason) == ("unknown", "the time for the tune was over before")


def test_where_the_time_is_over_nothing_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: Any) -> Timed:
        raise RunFailed(how="late")

    monkeypatch.setattr(checking, "timed", late)
    start: Any = None
    assert confirm(start, ADVICE, TuneProgress(tell=lambda _: None), 1000) is None


@pytest.mark.parametrize(("is_guarded", "confirming"), [(True, (3, 3)), (False, (2, 2))])
def test_the_parts_are_counted(is_guarded: bool, confirming: tuple[int, int]) -> None:
    seen: list[Progress] = []
    told = TuneProgress(tell=seen.append, is_guarded=is_guarded)
    told.reading()
    told.searching(MEASURING, "bfloat16")
    if is_guarded:
        told.guarding("FP32, seed 1")
    told.confirming("as it is")
    count = confirming[1]
    guard = [(2, count, GUARDING)] if is_guarded else []
    expected = [(None, None, READING), (1, count, MEASURING), *guard, (*confirming, CONFIRMING)]
    assert [(one.number, one.count, one.part) for one in seen] == expected
