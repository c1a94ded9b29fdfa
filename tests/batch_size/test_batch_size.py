"""The search on this machine's CPU: how the user's step can go wrong. Steps that compute are in `real/`."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stand_in
from recorded import RecordedHost
from stepping import refusal, written

from gputune.batch_size import BatchSizeRequest, search
from gputune.batch_size.running import died
from gputune.bench_process.messages import BenchFailed
from gputune.errors import MeasureError, UsageError
from gputune.host import Host, Unreadable


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", stand_in.torch(tmp_path))
    return partial(written, tmp_path)


@pytest.mark.slow
def test_a_step_that_fails_at_the_first_size_is_refused_with_its_place(training: Any) -> None:
    words = str(refusal(training("raise ValueError('shapes')")))
    assert "the step failed with a batch of 1: ValueError: shapes (training.py:5, in step)" in words


class BesideOthers(Host):
    """This machine, on which whatever a test uses of the CPUs counts as used by others."""

    def own_cpu_seconds(self) -> float:
        return 0.0


@pytest.mark.slow
def test_beside_others_no_batch_is_the_fastest_but_one_seems_so(training: Any) -> None:
    make = training("end = time.perf_counter() + 2e-3\nwhile time.perf_counter() < end: pass")
    answer = search(BatchSizeRequest(make=make, device="cpu", most=64, seconds=6), host=BesideOthers())
    assert answer.fastest is None
    assert answer.disturbed.startswith("others used ")
    assert answer.seeming in {row.params["batch"] for row in answer.timed}


@pytest.mark.slow
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
        search(BatchSizeRequest(make="os:getcwd", device="cpu"), host=host)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"make": "no-colon"}, "names no callable"),
        ({"device": "tpu"}, "there is no such device"),
        ({"start": 0}, "nothing lies between"),
        ({"start": 9, "most": 8}, "nothing lies between"),
        ({"most": 1 << 40}, "nothing lies between"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        search(replace(BatchSizeRequest(make="os:getcwd"), **asked), host=RecordedHost("cpu-only"))
    assert refused.value.remedy


@pytest.mark.slow
def test_a_process_that_never_gets_ready_is_one_line(training: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputune.bench_process.process.READY_SECONDS", 0)
    assert "no end after 0 s" in str(refusal(training("pass")))


@pytest.mark.parametrize(
    ("failed", "ended_by_watch", "fate", "why"),
    [
        (BenchFailed(how="signal", number=9), True, "no memory", "ended before it took the last of the memory"),
        (BenchFailed(how="signal", number=9), False, "no memory", "killed by SIGKILL, as where memory runs out"),
        (BenchFailed(how="signal", number=11), False, "failed", "the bench process was killed by SIGSEGV"),
        (BenchFailed(how="deadline", number=7), False, "no end", "no end after 7 s; the bench process was stopped"),
        (BenchFailed(how="exception", detail="KeyError: 0"), False, "failed", "KeyError: 0"),
    ],
)
def test_the_fate_of_a_batch_whose_process_ended(
    failed: BenchFailed, ended_by_watch: bool, fate: str, why: str
) -> None:
    trial = died(8, failed, ended_by_watch=ended_by_watch)
    assert (trial.batch, trial.fate, trial.why) == (8, fate, why)
