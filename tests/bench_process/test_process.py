"""A worker may die in any way: the reason is told, the next one goes on, and nothing of it stays."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
import stand_in
from recorded import facts_of

from gputune.bench_process.process import BenchFailed, BenchProcess

FACTS = asdict(facts_of("cpu-only"))
PLANTED = {"bench": "gputune.benches.planted", "seconds": 1, "budget": "quick"}


@pytest.fixture
def benches(tmp_path, monkeypatch):
    """A function that gives workers a bench of the given body, and unless told otherwise a torch that is none."""

    def add(body, torch=False):
        if not torch:
            stand_in.torch(tmp_path)
        monkeypatch.setenv("PYTHONPATH", stand_in.benches(tmp_path, planted=body))

    return add


def run(seconds=20.0):
    with BenchProcess() as worker:
        worker.ready("cpu", FACTS)
        return list(worker.run(PLANTED, deadline_seconds=seconds))


def reason(seconds=20.0):
    with BenchProcess() as worker:
        worker.ready("cpu", FACTS)
        with pytest.raises(BenchFailed) as died:
            list(worker.run(PLANTED, deadline_seconds=seconds))
        pid = worker.pid
    assert gone(pid)
    return str(died.value)


def group(leader):
    """The processes, zombies aside, of the group that a worker leads."""
    found = []
    for process in psutil.process_iter(["pid", "status"]):
        try:
            if process.info["status"] != psutil.STATUS_ZOMBIE and os.getpgid(process.info["pid"]) == leader:
                found.append(process.info["pid"])
        except ProcessLookupError:
            continue
    return found


def gone(leader):
    """Whether the group has ended; the kernel may take a moment over it."""
    deadline = time.monotonic() + 5
    while group(leader) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not group(leader)


@pytest.mark.slow
def test_what_a_bench_says_arrives_and_what_it_prints_does_not(benches):
    noise = "print('noise'); os.write(1, b'more noise'); context.say('half way'); yield from ()"
    benches(f"import torch; torch.zeros(1); {noise}", torch=True)
    assert run() == [{"say": "half way"}]


def test_what_a_bench_could_not_measure_arrives_as_a_gap(benches):
    benches("from gputune.facts.gap import Gap; yield Gap(fact='bench.planted', reason='no memory')")
    assert run() == [{"gap": {"fact": "bench.planted", "reason": "no memory"}}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("yield from (); raise RuntimeError('CUDA out of memory. Tried')", "RuntimeError: CUDA out of memory. Tried"),
        ("yield from (); os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("yield from (); os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
        (
            "yield from (); sys.stderr.write('no room at all\\n'); sys.stderr.flush(); os._exit(7)",
            "exit code 7: no room at all",
        ),
        ("yield from (); sys.exit(3)", "exit code 3"),
    ],
)
def test_every_way_to_die_is_told(benches, body, words):
    benches(body)
    assert words in reason()


def test_a_warning_is_no_reason(benches):
    benches("import warnings; warnings.warn('old'); sys.stderr.flush(); yield from (); os._exit(7)")
    assert reason() == "the worker was ended with exit code 7"


@pytest.mark.slow
def test_a_hang_ends_at_the_deadline_also_when_it_holds_the_interpreter(benches):
    benches("yield from (); import ctypes; ctypes.PyDLL(None).sleep(1000)")
    started = time.monotonic()
    assert "no end after 1 s" in reason(seconds=1)
    assert time.monotonic() - started < 10


def test_a_flood_on_stderr_does_not_stop_it(benches):
    benches("sys.stderr.write('x' * 5_000_000); context.say('still here'); yield from ()")
    assert run() == [{"say": "still here"}]


def test_a_grandchild_that_holds_the_pipes_does_not_hold_us_up(benches):
    benches("yield from ()\nif os.fork() == 0: time.sleep(1000)\nos._exit(5)")
    started = time.monotonic()
    assert "exit code 5" in reason()
    assert time.monotonic() - started < 10


SEMAPHORE = """
import multiprocessing
lock = multiprocessing.get_context('spawn').Lock()
context.say(lock._semlock.name)
"""
"""What a spawned process could open by its name: it has a file, until the resource tracker unlinks it, which is just starting."""


def file_of(name):
    return Path(f"/dev/shm/sem.{name.removeprefix('/')}")


def unlinked(name):
    deadline = time.monotonic() + 30
    while file_of(name).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not file_of(name).exists()


def test_what_is_killed_leaves_no_semaphore_behind(benches, monkeypatch):
    monkeypatch.setattr("gputune.host.child.TRACKER_SECONDS", 30.0)  # others may use the CPUs too
    benches(f"yield from ()\n{SEMAPHORE}signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1000)")
    with BenchProcess() as worker:
        worker.ready("cpu", FACTS)
        name = next(worker.run(PLANTED, deadline_seconds=20))["say"]
        assert file_of(name).exists()
    assert unlinked(name)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_parent(benches, how, tmp_path):
    benches(
        f"yield from ()\nif os.fork() == 0: time.sleep(1000)\n{SEMAPHORE}import ctypes; ctypes.CDLL(None).sleep(1000)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent("""
            import json, sys
            from gputune.bench_process.process import BenchProcess
            with BenchProcess() as worker:
                worker.ready("cpu", json.load(sys.stdin))
                for answer in worker.run({"bench": "gputune.benches.planted", "seconds": 1, "budget": "quick"}, 100):
                    print(worker.pid, answer["say"], flush=True)
        """)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    parent.stdin.write(json.dumps(FACTS))
    parent.stdin.close()
    worker, name = parent.stdout.readline().split()
    assert group(int(worker))
    parent.send_signal(how)
    parent.wait(10)
    assert gone(int(worker))
    assert unlinked(name)


@pytest.mark.slow
def test_a_worker_that_cannot_start_says_why():
    with BenchProcess() as worker, pytest.raises(BenchFailed) as died:
        worker.ready("cuda:99", FACTS)
    assert re.search("cuda|nvidia", str(died.value), re.IGNORECASE)
