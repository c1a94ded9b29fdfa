"""The user's step in a bench process on this machine's CPU: each batch's answer, and what the process survives."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from loaded import sorted_out
from recorded import facts_of
from stepping import written

from gputune.bench_process import Batches
from gputune.bench_process.messages import Activity, BenchFailed, BenchRequest
from gputune.bench_process.process import RestartingProcess
from gputune.benches import batch_size
from gputune.facts.gap import Gap
from gputune.measurement import Measurement

Answers = list[Measurement | Gap | Activity]


def on_this_cpu() -> Iterator[RestartingProcess]:
    with RestartingProcess() as started:
        started.measure_on("cpu", facts_of("cpu-only"))
        yield started


process = pytest.fixture(name="process")(on_this_cpu)
"""For one test, which is about memory or ends it."""
shared = pytest.fixture(name="shared", scope="module")(on_this_cpu)
"""For all steps that leave nothing behind."""


@pytest.fixture
def training(tmp_path: Path) -> Any:
    return partial(written, tmp_path)


def answers(process: RestartingProcess, make: str, *sizes: int, timed: bool = False, seconds: float = 1) -> Answers:
    batches = Batches(make=make, sizes=sizes, timed=timed)
    request = BenchRequest(bench=batch_size.__name__, seconds=seconds, budget="quick", batches=batches)
    return list(process.run(request, deadline_seconds=120))


def rows(answers: Answers) -> list[Measurement]:
    return [answer for answer in answers if isinstance(answer, Measurement)]


def gap(answers: Answers) -> tuple[str, str]:
    [gap] = sorted_out(answers)[1]
    return gap.fact, gap.reason


@pytest.mark.slow
def test_each_batch_that_runs_gives_its_rate_and_its_peak(process: RestartingProcess, training: Any) -> None:
    make = training("torch.ones(batch_size << 18)")
    small, large, small_again = rows(answers(process, make, 4, 260, 4))
    assert [row.params["batch"] for row in (small, large, small_again)] == [4, 260, 4]
    grown = large.conditions["peak_bytes"] - small.conditions["peak_bytes"]
    assert 200 << 20 < grown < 300 << 20
    assert small_again.conditions["peak_bytes"] < large.conditions["peak_bytes"] - (200 << 20)
    assert 0 < large.conditions["left_bytes"] < large.conditions["total_bytes"]
    assert small.samples[0] > 0


@pytest.mark.real
def test_a_trial_is_two_steps_at_least_and_the_step_is_made_once(
    process: RestartingProcess, training: Any, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    make = training(
        f"open({str(log)!r}, 'a').write('s'); import time; time.sleep(0.2)", f"open({str(log)!r}, 'a').write('m')"
    )
    answers(process, make, 1)
    answers(process, make, 2)
    assert log.read_text() == "mssss"


@pytest.mark.real
def test_batches_are_timed_in_turn(process: RestartingProcess, training: Any) -> None:
    timed = rows(answers(process, training("import time; time.sleep(1e-3)"), 1, 4, timed=True, seconds=3))
    one, four = ([row for row in timed if row.params["batch"] == batch] for batch in (1, 4))
    assert len(one[0].samples) == len(four[0].samples) >= 2
    assert four[0].samples[-1] > 2 * one[0].samples[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "if batch_size > 4: raise torch.OutOfMemoryError('CUDA out of memory. Tried')",
        "if batch_size > 4: raise MemoryError",
        "if batch_size > 4: torch.empty(1 << 60)",
    ],
)
def test_lacking_memory_is_said_and_the_same_process_goes_on(
    shared: RestartingProcess, training: Any, body: str
) -> None:
    make = training(body)
    given = answers(shared, make, 4, 8, 2)
    assert [row.params["batch"] for row in rows(given)] == [4]
    assert gap(given) == (batch_size.NO_MEMORY, "out of memory")
    pid = shared.start().kept.pid
    assert rows(answers(shared, make, 2))
    assert shared.start().kept.pid == pid


@pytest.mark.slow
def test_a_limit_of_the_process_is_a_lack_of_memory(process: RestartingProcess, training: Any) -> None:
    make = training(
        "torch.ones(batch_size << 18)",
        """
        import resource
        used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20), -1))
        """,
    )
    assert rows(answers(process, make, 64))
    assert gap(answers(process, make, 1024))[0] == batch_size.NO_MEMORY


@pytest.mark.real
def test_what_a_failed_step_held_is_given_back(process: RestartingProcess, training: Any) -> None:
    make = training("held = torch.ones(batch_size << 18)\nif batch_size > 100: raise MemoryError")
    before = rows(answers(process, make, 4))[0].conditions["peak_bytes"]
    answers(process, make, 1024)
    after = rows(answers(process, make, 4))[0].conditions["peak_bytes"]
    assert after < before + (512 << 20), "of the process: what the machine has free moves by itself"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "says"),
    [("raise ValueError('bad\\nbatch')", "ValueError: bad batch"), ("raise SystemExit(3)", "SystemExit: 3")],
)
def test_a_step_that_fails_is_one_line_with_its_place(
    shared: RestartingProcess, training: Any, body: str, says: str
) -> None:
    assert gap(answers(shared, training(body), 1)) == (batch_size.FAILED, f"{says} (training.py:5, in step)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def make_training(): return 3", "make_training() returned int and no callable step(batch_size)"),
        (
            "def make_training(): raise KeyError('data')",
            "make_training() raised KeyError: 'data' (own.py:1, in make_training)",
        ),
        ("1/0", "raised ZeroDivisionError"),
        ("x = 1", "has no callable make_training"),
    ],
)
def test_where_there_is_no_step_it_is_said(shared: RestartingProcess, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(text)
    fact, reason = gap(answers(shared, f"{path}:make_training", 1))
    assert fact == batch_size.UNUSABLE
    assert words in reason


@pytest.mark.real
def test_a_step_that_is_killed_takes_the_process_along_and_the_next_request_finds_another(
    process: RestartingProcess, training: Any
) -> None:
    make = training("if batch_size > 4: os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(BenchFailed, match="killed by SIGKILL"):
        answers(process, make, 8)
    assert rows(answers(process, make, 4))


@pytest.mark.real
def test_the_kernel_would_kill_the_bench_process_first(process: RestartingProcess, training: Any) -> None:
    make = training("assert open('/proc/self/oom_score_adj').read().strip() == '1000'")
    assert rows(answers(process, make, 1))
