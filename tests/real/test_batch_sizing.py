"""The search in steps that hang, die and take real time and memory: many seconds each.

Most of these steps only wait: torch, which each fresh process would import for seconds, is a stand-in.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stand_in
from stepping import SLEEPY, found, written

from gputune.batch_size import running

pytestmark = pytest.mark.real


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", stand_in.torch(tmp_path))
    return partial(written, tmp_path)


@pytest.mark.timed
def test_the_fastest_is_the_smallest_of_those_on_the_plateau(training: Any) -> None:
    """That begins at 100: 20 ms, beside which the noise of starting a step is small."""
    answer = found(training("time.sleep(max(2e-2, batch_size * 2e-4))"), most=1024, seconds=16)
    assert answer.largest == 1024
    fastest = answer.fastest or answer.seeming
    assert fastest is not None
    assert 90 <= fastest <= 256
    assert len(answer.timed) > 1
    assert answer.gain is None or answer.gain.ratio >= 1


def test_a_step_that_fails_at_some_size_bounds_the_search(training: Any) -> None:
    answer = found(training(f"{SLEEPY}\nif batch_size > 40: raise ValueError('no more than 40')"))
    assert answer.largest == 40
    failed = next(trial for trial in answer.trials if trial.fate == "failed")
    assert failed.why.startswith("ValueError: no more than 40 (training.py:")


def test_a_step_that_hangs_is_stopped_and_said(training: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SHORTEST_DEADLINE_SECONDS", 3.0)
    monkeypatch.setattr(running, "PATIENCE", 5)
    started = time.monotonic()
    answer = found(training(f"{SLEEPY}\nif batch_size > 4: time.sleep(1000)"), seconds=6)
    assert time.monotonic() - started < 60
    assert answer.largest == 4
    hung = answer.trial(8)
    assert (hung.fate, hung.ran) == ("no end", False)
    assert "no end after " in hung.why


def test_a_killed_process_means_that_the_batch_does_not_fit(training: Any) -> None:
    answer = found(training(f"{SLEEPY}\nif batch_size > 20: os.kill(os.getpid(), signal.SIGKILL)"), seconds=16)
    assert answer.largest == 20
    assert {trial.fate for trial in answer.trials if trial.batch > 20} == {"no memory"}
    assert "SIGKILL" in next(trial.why for trial in answer.trials if trial.batch > 20)


@pytest.mark.parametrize(
    ("body", "asked", "largest"),
    [(f"{SLEEPY}\nif batch_size > 3: raise MemoryError", {"start": 64}, 3), ("pass", {"most": 64, "seconds": 8}, 64)],
    ids=["the start is too large", "everything fits"],
)
def test_the_largest_of_all_that_ran(training: Any, body: str, asked: dict[str, Any], largest: int) -> None:
    answer = found(training(body), **asked)
    assert (answer.largest, answer.largest_run) == (largest, largest)
    assert all(trial.ran == (trial.batch <= largest) for trial in answer.trials)


def test_the_time_ends_it_and_that_is_said(training: Any) -> None:
    answer = found(training("time.sleep(0.05 * batch_size)"), seconds=4)
    assert answer.largest is not None
    assert answer.largest < 64
    assert any("--seconds" in note for note in answer.notes)


def test_what_fails_in_a_fresh_process_is_not_named(training: Any, tmp_path: Path) -> None:
    """The first process can take 200, every other one 100: what was left over of the first is what it could not."""
    mark = tmp_path / "mark"
    make = training(
        f"{SLEEPY}\nif batch_size > most: raise MemoryError",
        f"mark = pathlib.Path({str(mark)!r}); most = 100 if mark.exists() else 200; mark.touch()",
    )
    answer = found(make)
    assert answer.largest is not None
    assert answer.largest <= 100
    assert all(int(row.params["batch"]) <= answer.largest for row in answer.timed)


def test_the_largest_is_between_what_ran_and_what_did_not(tmp_path: Path) -> None:
    """With torch itself."""
    make = written(tmp_path, f"{SLEEPY}\nif batch_size > 300: raise torch.OutOfMemoryError('CUDA out of memory.')")
    answer = found(make, seconds=30)
    assert answer.largest == answer.largest_run
    assert 291 <= answer.largest_run <= 300
    above = min(trial.batch for trial in answer.trials if not trial.ran)
    assert above <= answer.largest_run + max(1, 0.03 * answer.largest_run)
    assert answer.trial(answer.largest_run).peak_bytes > 50 << 20
