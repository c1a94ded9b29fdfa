"""OpenMP threads: a number where one beats torch's own count, else none."""

from __future__ import annotations

from typing import Any

import pytest
import torch_child
from making import row
from recorded import facts_of

from gputune.settings.omp_threads import environ, recommend

HOST = facts_of("cpu-only")


def measured(default: int, **rates: float) -> list[Any]:
    return [
        row("cpu_threads", "throughput", rate, device="cpu", threads=int(name[1:]), default=int(name[1:]) == default)
        for name, rate in rates.items()
    ]


def test_a_gain() -> None:
    choice = recommend(HOST, measured(64, t64=1.0, t8=3.0, t4=2.0, t1=0.5))
    assert choice.value == 8
    assert choice.gain == pytest.approx(3.0, rel=0.01)
    assert "with 8 threads ran" in choice.reason
    assert choice.evidence == ("cpu_threads",)


def test_no_gain() -> None:
    choice = recommend(HOST, measured(8, t8=1.0, t4=1.0, t1=0.2))
    assert choice.value is None
    assert choice.reason.startswith("no gain: ")


def test_the_only_count_there_is() -> None:
    choice = recommend(HOST, measured(1, t1=1.0))
    assert choice.value is None
    assert "is the only count" in choice.reason


def test_too_few_samples_is_not_the_only_count() -> None:
    from dataclasses import replace

    rows = [replace(one, samples=one.samples[:3]) for one in measured(8, t8=1.0, t4=3.0)]
    choice = recommend(HOST, rows)
    assert choice.value is None
    assert "only count" not in choice.reason


@pytest.mark.parametrize("rows", [[], measured(16, t8=1.0, t4=3.0)])
def test_not_measured(rows: list[Any]) -> None:
    assert recommend(HOST, rows).value is None


def test_the_variable() -> None:
    assert environ(8) == {"OMP_NUM_THREADS": "8"}
    assert environ(None) == {}


def test_in_a_process_that_runs_already() -> None:
    assert torch_child.ask("""
from gputune.settings import omp_threads as setting
answer = [setting.current() == setting.default() == torch.get_num_threads()]
for value in (1, 2, 1):
    setting.apply(value)
    answer.append(setting.current())
""") == [True, 1, 2, 1]
