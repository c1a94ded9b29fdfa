"""Training scripts in processes of their own, which take turns in short blocks of steps; `training/blocks.py` is their
side of it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from gputune.host import Host
from gputune.measurement import FEWEST_PAIRS, Comparison, comparison_of
from gputune.profile import Profile, load, save
from gputune.runtime.local_fingerprint import local_fingerprint

HERE = Path(__file__).parent
PROFILE = HERE.parents[1] / "profiles" / "nvidia-h200.yaml"
ROUNDS = 20
BLOCK_SECONDS = 0.25
CPUS = 2
"""For the two threads of a step, that of its forward and that of its backward pass."""
PATIENCE_SECONDS = 300
"""For one answer, the longest of which is a first step that compiles."""
WARM_UP_STEPS = 5
"""Unchanged scripts are tuned after their second step."""


def command_line(doc: str | None, names: Sequence[str]) -> argparse.ArgumentParser:
    """Of a script that prints a table with a row for each of `names`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS} by default, {FEWEST_PAIRS} at least")
    parser.add_argument("--block-seconds", type=float, default=BLOCK_SECONDS)
    return parser


def write_profile(path: Path) -> None:
    """The H200's, as if measured on this very machine: the driver and the CPUs beside an H200 differ from one to the
    next.
    """
    save(as_of_here(load(PROFILE)), path)


def as_of_here(profile: Profile) -> Profile:
    return replace(profile, fingerprint=local_fingerprint(Host()))


def python(script: str, *arguments: str) -> list[str]:
    """The command that runs a script of this folder."""
    return [sys.executable, str(HERE / script), *arguments]


def under_apply(profile: Path, command: Sequence[str], *options: str) -> list[str]:
    return [sys.executable, "-m", "gputune", "apply", "--strict", *options, str(profile), "--", *command]


def first_steps(starts: Sequence[Callable[[], AbstractContextManager[Script]]]) -> None:
    """Make the first steps of all these scripts at once, for the sake of inductor's cache. What fails here will fail
    again, or be compiled, in its own turn.
    """

    def run(start: Callable[[], AbstractContextManager[Script]]) -> None:
        with suppress(RuntimeError, AssertionError), start() as script:
            script.trained(WARM_UP_STEPS)

    with ThreadPoolExecutor(max(1, len(starts))) as pool:
        list(pool.map(run, starts))


def warm_up_at_once(scripts: Sequence[Script]) -> None:
    """Have all of them compile at the same time, which takes most of the time."""
    with ThreadPoolExecutor(max(1, len(scripts))) as pool:
        list(pool.map(lambda script: script.seconds(WARM_UP_STEPS), scripts))


def in_turn(
    scripts: Mapping[str, Script], rounds: int, block_seconds: float, cpus: int = CPUS
) -> dict[str, list[float]]:
    """Steps per second of each script in each round, in rounds of changing order, every other the reverse of the one
    before.

    Each has its first steps to itself, so that neither cuDNN's search nor compiling is disturbed; the first round is
    not kept. Then all of them, of which one works at a time, share a few CPUs, since those of a virtual machine are not
    equally fast; these lie apart, since neighbours may be two threads of one core.
    """
    for script in scripts.values():
        script.seconds(WARM_UP_STEPS)
    own = sorted(os.sched_getaffinity(0))
    shared = own[:: max(1, len(own) // cpus)][:cpus]
    for script in scripts.values():
        script.pin(shared)
    steps = {name: steps_within(block_seconds, script) for name, script in scripts.items()}
    rates: dict[str, list[float]] = {name: [] for name in scripts}
    for number in range(rounds + 1):
        order = list(scripts)
        random.Random(number // 2).shuffle(order)
        for name in order if number % 2 else order[::-1]:
            rates[name].append(steps[name] / scripts[name].seconds(steps[name]))
    return {name: each[1:] for name, each in rates.items()}


def steps_within(seconds: float, script: Script) -> int:
    steps, taken = 1, script.seconds(1)
    while taken < seconds / 2:
        steps *= 2
        taken = script.seconds(steps)
    return max(1, round(steps * seconds / taken))


def compared(rates: Sequence[float], others: Sequence[float]) -> Comparison:
    found = comparison_of([one / other for one, other in zip(rates, others, strict=True)])
    assert found is not None, f"fewer than {FEWEST_PAIRS} rounds say nothing"
    return found


def peak(answers: Sequence[Mapping[str, Any]]) -> float | None:
    """In MiB; None without a GPU."""
    return max((one["peak_mib"] for one in answers if one["peak_mib"] is not None), default=None)


class Script:
    """A training script in a process of its own. `answers` is all that it said on stdout, line by line."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process, self._errors = process, errors
        self.answers: list[dict[str, Any]] = []

    def hello(self) -> dict[str, Any]:
        return self.answers[0] if self.answers else self._answer()

    def seconds(self, steps: int) -> float:
        return float(self.trained(steps)["seconds"])

    def trained(self, steps: int) -> dict[str, Any]:
        self.hello()
        assert self._process.stdin
        with suppress(BrokenPipeError):  # then there comes no answer, which says why
            self._process.stdin.write(f"{steps}\n")
            self._process.stdin.flush()
        return self._answer()

    def pin(self, cpus: Sequence[int]) -> None:
        """All its threads, to the same CPUs."""
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            with suppress(ProcessLookupError):  # a thread that has just ended
                os.sched_setaffinity(int(task.name), cpus)

    def end(self) -> str:
        assert self._process.stdin
        self._process.stdin.close()
        code = self._process.wait(PATIENCE_SECONDS)
        assert code == 0, f"{self._process.args} ended with {code}:\n{self._stderr()[-4000:]}"
        return self._stderr()

    def _answer(self) -> dict[str, Any]:
        """The next line that it prints. Raises RuntimeError, with what it said on stderr, where there comes none."""
        output = self._process.stdout
        assert output
        line = output.readline() if select.select([output], [], [], PATIENCE_SECONDS)[0] else ""
        if not line.endswith("\n"):
            words = " ".join(map(str, self._process.args))
            raise RuntimeError(f"no answer from {words}:\n{self._stderr()[-4000:]}")
        self.answers.append(json.loads(line))
        return self.answers[-1]

    def _stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read()


@contextmanager
def at_work(words: Sequence[str], folder: str, environ: Mapping[str, str] = os.environ) -> Iterator[Script]:
    """A script that was started, with the scripts of a folder of this one to import; at the end it and what it started
    are gone, however that comes.
    """
    path = [str(HERE / folder), str(HERE / "training"), *filter(None, [environ.get("PYTHONPATH")])]
    variables = {**environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stderr=errors, start_new_session=True, env=variables, **pipes)
        try:
            script = Script(process, errors)
            yield script
            script.end()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(BrokenPipeError):
                    pipe.close()
