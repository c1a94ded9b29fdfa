"""A bench process may die in any way: the parent learns how, and nothing of it is left."""

import os

import psutil
import pytest
import stand_in
from making import until
from recorded import facts_of

from gputune.bench_process.messages import Activity, BenchFailed, BenchRequest, Start
from gputune.bench_process.process import BenchProcess
from gputune.facts.gap import Gap

START = Start(device="cpu", facts=facts_of("cpu-only"))

BENCHES = {
    "noisy": "print('noise'); os.write(1, b'more noise'); context.say('half way'); yield from ()",
    "lacking": "yield Gap(fact='bench.lacking', reason='no memory')",
    "flooding": "sys.stderr.write('x' * 5_000_000); context.say('still here'); yield from ()",
    "raising": "yield from (); raise RuntimeError('CUDA out of memory. Tried')",
    "having_a_cause": "from gputune.host import Unreadable\nyield from (); raise Unreadable('a worker died', 'killed')",
    "numbering": "yield 3",
    "killed": "yield from (); os.kill(os.getpid(), signal.SIGKILL)",
    "crashing": "yield from (); os.kill(os.getpid(), signal.SIGSEGV)",
    "complaining": "yield from (); sys.stderr.write('no room at all\\n'); sys.stderr.flush(); os._exit(7)",
    "exiting": "yield from (); sys.exit(3)",
    "warning": "import warnings; warnings.warn('old'); sys.stderr.flush(); yield from (); os._exit(7)",
    "hanging": "yield from (); import ctypes; ctypes.PyDLL(None).sleep(1000)",  # and holds the interpreter
    "leaving": "yield from ()\nif os.fork() == 0: time.sleep(1000)\nos._exit(5)",
}


@pytest.fixture(scope="module", autouse=True)
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    stand_in.torch(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", stand_in.benches(folder, **BENCHES))
        yield


def request(name):
    return BenchRequest(bench=f"gputune.benches.{name}", seconds=1.0, budget="quick")


@pytest.fixture(scope="module")
def process(planted):
    with BenchProcess() as process:
        process.ready(START)
        yield process


def failure(name, seconds):
    with BenchProcess() as process:
        process.ready(START)
        with pytest.raises(BenchFailed) as failed:
            list(process.run(request(name), deadline_seconds=seconds))
    assert gone(process.kept.pid)
    return failed.value


def group(leader):
    members = []
    for process in psutil.process_iter(["pid", "status"]):
        try:
            if process.info["status"] != psutil.STATUS_ZOMBIE and os.getpgid(process.info["pid"]) == leader:
                members.append(process.info["pid"])
        except ProcessLookupError:
            continue
    return members


def gone(leader):
    until(lambda: not group(leader))
    return True


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("noisy", Activity(text="half way")),
        ("lacking", Gap(fact="bench.lacking", reason="no memory")),
        ("flooding", Activity(text="still here")),
    ],
)
def test_only_what_a_bench_answers_arrives(process, name, answer):
    assert list(process.run(request(name), deadline_seconds=60)) == [answer]


@pytest.mark.parametrize(
    ("name", "sentence", "cause"),
    [
        ("raising", "RuntimeError: CUDA out of memory. Tried", None),
        ("having_a_cause", "Unreadable: a worker died", "killed"),
        ("numbering", "TypeError: asdict() should be called on dataclass instances", None),
    ],
)
def test_an_exception_leaves_the_process_alive(process, name, sentence, cause):
    with pytest.raises(BenchFailed) as failed:
        list(process.run(request(name), deadline_seconds=60))
    assert (str(failed.value), failed.value.how, failed.value.cause) == (sentence, "exception", cause)
    assert not process.has_ended


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sentence", "cause"),
    [
        ("killed", "the bench process was killed by SIGKILL", "killed"),
        ("crashing", "the bench process was killed by SIGSEGV", None),
        ("complaining", "the bench process ended with exit code 7: no room at all", None),
        ("exiting", "the bench process ended with exit code 3", None),
        ("warning", "the bench process ended with exit code 7", None),
        ("leaving", "the bench process ended with exit code 5", None),
        ("hanging", "no end after 1 s; the bench process was stopped", None),
    ],
)
def test_every_way_to_end_is_reported(name, sentence, cause):
    failed = failure(name, seconds=1 if name == "hanging" else 60)
    assert (str(failed), failed.cause) == (sentence, cause)


@pytest.mark.slow
def test_a_device_that_does_not_work_is_reported(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("class cuda:\n    def set_device(device): raise AssertionError('no CUDA')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with BenchProcess() as process, pytest.raises(BenchFailed, match=r"^AssertionError: no CUDA$"):
        process.ready(Start(device="cuda:99", facts=START.facts))
