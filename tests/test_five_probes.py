"""Probes in a row go through the same motions without a GPU; `python tests/five_probes.py` prints their figures."""

import five_probes
import pytest

from gputune.settings import Choice


def test_what_differs_is_named_with_the_value_of_each_probe() -> None:
    first = {"mlp.amp_dtype": Choice(value=None, reason=""), "omp_threads": Choice(value=None, reason="")}
    second = {"mlp.amp_dtype": Choice(value="bfloat16", reason=""), "omp_threads": Choice(value=None, reason="")}
    assert five_probes.differing([first, first]) == {}
    assert five_probes.differing([first, second, {}]) == {"mlp.amp_dtype": [None, "bfloat16", None]}


@pytest.mark.exhaustive
@pytest.mark.slow
def test_probes_in_a_row_beside_a_loop() -> None:
    found = five_probes.in_a_row(1, "--device", "cpu", "--only", "precision", count=2)
    assert len(found["seconds"]) == 2
    assert (found["differing"], found["differing alone"]) == ({}, {})
    assert found["workers"]["decoding"] == [None, None]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_sweep_has_a_rate_and_its_error_for_each_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(five_probes, "TURN_SECONDS", 0.1)
    rates = five_probes.sweep(0, {"memory": (0, 1)})["memory"]
    (none, _), (one, error) = [map(float, rates[count].rstrip(")").split("(")) for count in (0, 1)]
    assert none > one > error > 0
