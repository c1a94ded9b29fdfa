"""What a tune chooses by whole starts of the program, of the combinations that gained in its search."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded import facts_of
from trials.test_result import PLAIN, arm, measured

from gputune.profile import Confirmation
from gputune.trials import tuning
from gputune.trials.progress import TuneProgress
from gputune.trials.result import TuneResult
from gputune.trials.start import Start

COMPILED, FUSED = {"compile": True, "fused_optimizer": True}, {"fused_optimizer": True}
FASTER = Confirmation(plain_ms=(10.0,), tuned_ms=(5.0,), cost_seconds=30.0)
SLOWER = Confirmation(plain_ms=(10.0,), tuned_ms=(10.6,), cost_seconds=0.0)


def chosen(monkeypatch: pytest.MonkeyPatch, *whole: Confirmation | None, length: int | None = None) -> TuneResult:
    """The result where a combination is compiled, another is not, and these are the whole starts one after another."""
    found = measured(PLAIN, arm([15.0] * 12, **FUSED), arm([30.0] * 12, **COMPILED))
    starts = iter(whole)
    monkeypatch.setattr(tuning, "measure", lambda *_, **__: replace(found, length=length))
    monkeypatch.setattr(tuning, "confirm", lambda *_: next(starts))
    start: Any = Start(command=("true",), environ={}, folder=Path(), log=None)  # type: ignore[arg-type]  # never started
    request = tuning.TuneRequest(command=("true",), environ={}, folder=Path(), guard_steps=None)
    told = TuneProgress(tell=lambda _: None)
    host: Any = None
    return tuning._Tune(request, start, facts_of(), told, "cpu").run(host)


def values(found: TuneResult) -> dict[str, Any]:
    return {name: choice.value for name, choice in found.program.settings.items()}


def test_what_gains_in_whole_starts_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch, FASTER)
    assert (values(found), found.program.confirmation) == (COMPILED, FASTER)


def test_what_is_slower_in_whole_starts_is_not_but_the_part_of_it_that_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch, SLOWER, FASTER)
    assert (values(found), found.program.confirmation) == (FUSED, FASTER)
    [gap] = found.program.refused
    assert (gap.reason, gap.cause) == ("in whole starts 10 ms without it, and 10.6 with it", "no_gain")


@pytest.mark.parametrize("second", [SLOWER, None])
def test_where_no_part_is_seen_to_gain_nothing_is(monkeypatch: pytest.MonkeyPatch, second: Confirmation | None) -> None:
    found = chosen(monkeypatch, SLOWER, second)
    assert (values(found), found.gain) == ({}, None)


@pytest.mark.parametrize("second", [FASTER, None])
def test_a_program_that_ends_before_compiling_is_paid_back_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch, second: Confirmation | None
) -> None:
    assert values(chosen(monkeypatch, FASTER, second, length=5000)) == FUSED
    assert values(chosen(monkeypatch, FASTER, second, length=7000)) == COMPILED
