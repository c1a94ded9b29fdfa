"""How many workers load: the fewest that are nearly the best, where they gain over none."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_workers import recommend

HOST = facts_of()


def measured(kind: str = "decode", **rates: float) -> list[Any]:
    return [row("dataloader", "throughput", rate, kind=kind, workers=int(name[1:])) for name, rate in rates.items()]


def test_the_fewest_that_are_nearly_the_best() -> None:
    choice = recommend(HOST, measured(w0=100.0, w2=190.0, w4=380.0, w8=385.0, w16=300.0))
    assert choice.value == 4
    assert choice.gain == pytest.approx(3.8, rel=0.01)
    assert "with 4 workers as with none" in choice.reason


@pytest.mark.parametrize("rates", [{"w1": 99.0, "w2": 80.0}, {"w1": 101.0, "w2": 102.0}])
def test_no_gain(rates: dict[str, float]) -> None:
    choice = recommend(HOST, measured(w0=100.0, **rates))
    assert choice.value == 0
    assert choice.reason.startswith("no gain: ")


def test_what_they_do_to_cheap_samples_is_said() -> None:
    rows = measured(w0=100.0, w4=380.0) + measured("cheap", w0=100.0, w4=20.0)
    choice = recommend(HOST, rows)
    assert choice.value == 4
    assert choice.reason.endswith("use 0 for those")


@pytest.mark.parametrize(
    "rows", [[], measured(w0=100.0), measured(w2=100.0, w4=200.0), measured("cheap", w0=1.0, w4=9.0)]
)
def test_not_measured(rows: list[Any]) -> None:
    choice = recommend(HOST, rows)
    assert (choice.value, choice.gain) == (0, None)
