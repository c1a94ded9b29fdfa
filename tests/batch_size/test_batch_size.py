"""The search in workers on this machine's CPU: every way in which the user's step can go wrong. Steps that compute are in `real/`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stand_in
from recorded import RecordedHost
from stepping import refusal, written

from gputune.batch_size import Request, search
from gputune.bench_process.process import BenchFailed, BenchProcess
from gputune.errors import MeasureError, UsageError
from gputune.host import Unreadable


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of steps that do not get as far as computing."""
    monkeypatch.setenv("PYTHONPATH", stand_in.torch(tmp_path))
    return partial(written, tmp_path)


@pytest.mark.slow
def test_a_step_that_fails_at_the_first_size_is_refused_with_its_place(training: Any) -> None:
    words = str(refusal(training("raise ValueError('shapes')")))
    assert "the step failed with a batch of 1: ValueError: shapes (training.py:5, in step)" in words


def test_what_makes_no_step_is_refused(training: Any, tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("def make(): return None")
    assert "make() returned NoneType and no callable step" in str(refusal(f"{tmp_path}/none.py:make"))


@pytest.mark.slow
def test_where_nothing_runs_it_is_one_line(training: Any) -> None:
    words = str(refusal(training("raise MemoryError"), start=4))
    assert words.startswith("not even a batch of 1 ran: out of memory; ")


def test_a_machine_without_torch_is_refused() -> None:
    host = RecordedHost("cpu-only", torch=Unreadable("torch did not answer"))
    with pytest.raises(MeasureError, match="torch did not answer"):
        search(Request(make="os:getcwd", device="cpu"), host=host)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"make": "nowhere.py:make"}, "there is no file nowhere.py"),
        ({"make": "no-colon"}, "names no callable"),
        ({"device": "tpu"}, "there is no such device"),
        ({"start": 0}, "nothing lies between"),
        ({"start": 9, "most": 8}, "nothing lies between"),
        ({"most": 1 << 40}, "nothing lies between"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        search(replace(Request(make="os:getcwd"), **asked), host=RecordedHost("cpu-only"))
    assert refused.value.remedy


def test_a_worker_that_cannot_start_is_one_line(training: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputune.bench_process.process.BenchProcess.ready", never_ready)
    assert "no end after 180 s" in str(refusal(training("pass")))


def never_ready(worker: BenchProcess, device: str, facts: Any) -> None:
    raise BenchFailed("no end after 180 s; it was stopped")
