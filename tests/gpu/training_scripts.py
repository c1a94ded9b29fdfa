"""Plain training scripts under a profile, beside the same scripts tuned by hand: `python tests/gpu/training_scripts.py
[NETWORK...]`.

Each network is trained by five processes at once, which take turns in short blocks:

- `defaults`: the script alone;
- `plain`: the script, unchanged, under `gputune apply`;
- `by_hand`: the script after the same flags written by hand;
- `tuning`: the script with the lines of a Tuning added;
- `best`: the best combination that the profile knows of, written by hand with torch alone.

Without a GPU it goes through the same motions on the CPU, in the CPU sizes of the networks, where the ratios mean
nothing.
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
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import IO, Any

from gputune.benches._networks import NETWORKS
from gputune.host import Host
from gputune.measurement import FEWEST_PAIRS, Comparison, comparison_of
from gputune.profile import load, save
from gputune.runtime.local_fingerprint import local_fingerprint

SCRIPTS = Path(__file__).with_name("training")
PROFILE = Path(__file__).parents[2] / "profiles" / "nvidia-h200.yaml"
ROUNDS = 20
BLOCK_SECONDS = 0.25
PATIENCE_SECONDS = 300
"""For one answer, the longest of which is a first step that compiles."""
COMPARED = (("plain", "by_hand"), ("tuning", "best"), ("plain", "defaults"), ("tuning", "defaults"))


def measured(name: str, rounds: int = ROUNDS, block_seconds: float = BLOCK_SECONDS) -> dict[str, Any]:
    """What became of one network: a Comparison for each pair of `COMPARED`, and the steps per second of each variant.

    Raises AssertionError where the variants do not do what they are to be compared for.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "profile.yaml"
        write_profile(path)
        scripts = {variant: stack.enter_context(at_work(words)) for variant, words in commands(name, path).items()}
        said = {variant: script.answer() for variant, script in scripts.items()}
        verify(name, said)
        rates = in_turn(scripts, rounds, block_seconds)
    return {
        **{f"{one}/{other}": compared(rates[one], rates[other]) for one, other in COMPARED},
        "steps per second": {variant: median(each) for variant, each in rates.items()},
        "flags": {variant: one["flags"] for variant, one in said.items()},
        "seconds": time.monotonic() - started,
    }


def write_profile(path: Path) -> None:
    """The H200's, as if measured on this very machine: the driver and the CPUs beside an H200 differ from one to the
    next.
    """
    save(replace(load(PROFILE), fingerprint=local_fingerprint(Host())), path)


def commands(name: str, profile: Path) -> dict[str, list[str]]:
    def python(script: str, *arguments: str) -> list[str]:
        return [sys.executable, str(SCRIPTS / f"{script}.py"), *arguments]

    return {
        "defaults": python("plain", name),
        "plain": [sys.executable, "-m", "gputune", "apply", "--strict", str(profile), "--", *python("plain", name)],
        "by_hand": python("by_hand", name),
        "tuning": python("tuning", name, str(profile)),
        "best": python("best", name),
    }


def verify(name: str, said: Mapping[str, Mapping[str, Any]]) -> None:
    """Assert that the variants train the reference network, under the flags and with the options to be compared."""
    import torch

    network = NETWORKS[name]
    size = network.cuda if torch.cuda.is_available() else network.cpu
    with torch.device("meta"):
        parameters = sum(one.numel() for one in network.build(size).parameters())
    inputs, _ = network.data(size, "cpu", torch.Generator())
    for variant, one in said.items():
        assert one["parameters"] == parameters, f"{name}, {variant}: another network than the reference"
        assert one["inputs"] == list(inputs.shape), f"{name}, {variant}: another batch than the reference's"
    by_hand = said["by_hand"]["flags"]
    for variant in ("plain", "tuning", "best"):
        assert said[variant]["flags"] == by_hand, f"{name}, {variant}: other flags than by hand"
    assert said["defaults"]["flags"] != by_hand, f"{name}: the profile changes no flag"
    assert said["tuning"]["family"] == name, f"{name}: taken for {said['tuning']['family']}"
    family = {setting: choice.value for setting, choice in load(PROFILE).families[name].items()}
    assert said["best"]["options"] == family, f"{name}: best.py is not what the profile calls the best"
    given = {setting: said["tuning"]["options"][setting] for setting in family}
    assert given == family, f"{name}: the Tuning gave {given}"


def in_turn(scripts: Mapping[str, Script], rounds: int, block_seconds: float) -> dict[str, list[float]]:
    """Steps per second of each script in each round, in rounds of changing order, every other the reverse of the one
    before.

    Each has its first steps to itself, so that neither cuDNN's search nor compiling is disturbed; the first round is
    not kept. Then all of them, of which one works at a time, share two CPUs: those of a virtual machine are not equally
    fast.
    """
    for script in scripts.values():
        script.seconds(3)
    cpus = sorted(os.sched_getaffinity(0))[:2]
    for script in scripts.values():
        script.pin(cpus)
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


class Script:
    """A training script in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process, self._errors = process, errors

    def seconds(self, steps: int) -> float:
        """That so many steps take."""
        assert self._process.stdin
        with suppress(BrokenPipeError):  # then there comes no answer, which says why
            self._process.stdin.write(f"{steps}\n")
            self._process.stdin.flush()
        return float(self.answer())

    def pin(self, cpus: Sequence[int]) -> None:
        """All its threads, to the same CPUs."""
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            with suppress(ProcessLookupError):  # a thread that has just ended
                os.sched_setaffinity(int(task.name), cpus)

    def answer(self) -> Any:
        """The next line that it prints. Raises RuntimeError, with what it said on stderr, where there comes none."""
        output = self._process.stdout
        assert output
        line = output.readline() if select.select([output], [], [], PATIENCE_SECONDS)[0] else ""
        if not line.endswith("\n"):
            raise RuntimeError(f"no answer from {' '.join(map(str, self._process.args))}:\n{self._stderr()}")
        return json.loads(line)

    def end(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin
        self._process.stdin.close()
        code = self._process.wait(PATIENCE_SECONDS)
        assert code == 0, f"{self._process.args} ended with {code}:\n{self._stderr()}"

    def _stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-4000:]


@contextmanager
def at_work(words: Sequence[str]) -> Iterator[Script]:
    """A script that was started; at the end it and what it started are gone, however that comes."""
    path = os.pathsep.join(filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")]))
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            words, stderr=errors, start_new_session=True, env={**os.environ, "PYTHONPATH": path}, **pipes
        )
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


def line(name: str, found: Mapping[str, Any]) -> str:
    ratios = [
        f"{pair} {one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
        for pair, one in found.items()
        if isinstance(one, Comparison)
    ]
    return f"{name:<12} {'   '.join(ratios)}   {found['seconds']:.0f} s"


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS} by default, {FEWEST_PAIRS} at least")
    parser.add_argument("--block-seconds", type=float, default=BLOCK_SECONDS)
    return parser.parse_args()


if __name__ == "__main__":
    wanted = asked()
    here = local_fingerprint(Host())
    print(f"on {here.gpu or 'the CPU, where the ratios mean nothing'}, torch {here.torch}")
    for network in wanted.networks or NETWORKS:
        print(line(network, measured(network, wanted.rounds, wanted.block_seconds)), flush=True)
