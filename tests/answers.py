"""Profiles whose last screens are golden files: recorded machines wherever there are any."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from recorded import MACHINES, facts_of

from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.probing import recommending
from gputune.profile import Profile, load
from gputune.report.answer import answer_of
from gputune.report.answer_text import lines
from gputune.strict_types import convert

TERMINAL = 80
SHIPPED = MACHINES.parents[1] / "profiles" / "nvidia-h200.yaml"
CREATED = "2026-11-21T12:00:00Z"
OUT_OF_MEMORY = (
    "the bench process was killed by SIGKILL; the kernel's OOM killer did it, since the memory ran out: "
    "the limit here is 4096 MiB"
)


def two_cpus(name: str) -> Profile:
    """Of a standard probe on two CPUs: idle, or beside busy loops of others."""
    return derived(facts_of("cpu-only", affinity=range(2)), rows_of(MACHINES / "two-cpus" / f"{name}.json"), "cpu")


def nothing_to_gain() -> Profile:
    """Of the idle machine with two CPUs, if all that was compared on it had been equally fast."""
    rows = rows_of(MACHINES / "two-cpus" / "idle.json")
    equal = [replace(one, samples=(100.0,) * 12) if one.metric == "throughput" else one for one in rows]
    return derived(facts_of("cpu-only", affinity=range(2)), equal, "cpu")


def without_training_steps() -> Profile:
    """Of an H200 whose bench of training steps was killed."""
    gap = Gap(fact="bench.training_step", reason=OUT_OF_MEMORY, cause="killed")
    rows = [one for one in load(SHIPPED).measurements if one.bench != "training_step"]
    return recommending.profile_of(facts_of_file("nvidia-h200"), rows, "cuda:0", created=CREATED, gaps=[gap])


def one_slow_of_four() -> Profile:
    """Of four H200, one of which another process loaded in both runs of the bench that compares them."""
    sets = json.loads((MACHINES / "nvidia-h200-x4" / "side_by_side.json").read_text())
    loaded = next(one["rows"] for one in sets if one["loaded"] == "cuda:2")
    beside = [
        convert(Measurement, {**one, "params": {**one["params"], "run": run}}) for run in (1, 2) for one in loaded
    ]
    rows = [*load(SHIPPED).measurements, *beside]
    return derived(facts_of_file("nvidia-h200-x4"), rows, "cuda:0")


def derived(facts: Facts, rows: Sequence[Measurement], device: str) -> Profile:
    return recommending.profile_of(facts, rows, device, created=CREATED)


def rows_of(path: Path) -> list[Measurement]:
    return [convert(Measurement, one) for one in json.loads(path.read_bytes())]


def facts_of_file(machine: str) -> Facts:
    found: Facts = convert(Facts, json.loads((MACHINES / machine / "facts.json").read_bytes()))
    return found


PROFILES: Mapping[str, Callable[[], Profile]] = {
    "h200": lambda: load(SHIPPED),
    "two-cpus": lambda: two_cpus("idle"),
    "busy": lambda: two_cpus("beside-2-loops"),
    "unmeasured": lambda: derived(facts_of("cpu-only"), (), "cpu"),
    "nothing-to-gain": nothing_to_gain,
    "failing-bench": without_training_steps,
    "slow-gpu-of-four": one_slow_of_four,
    "tuned-script": lambda: load(MACHINES / "nvidia-h200-tuned" / "mlp.yaml"),
    "tuned-script-alone": lambda: load(MACHINES / "nvidia-h200-tuned" / "character_gpt.yaml"),
}


def golden(name: str) -> str:
    """The last screen of a profile on a terminal of 80 columns."""
    return "".join(f"{line}\n" for line in lines(answer_of(PROFILES[name](), "profile.yaml"), TERMINAL))
