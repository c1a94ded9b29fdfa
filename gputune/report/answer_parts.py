"""The parts of a profile's answer, and their words: what is gained and how, what was chosen, and what to type next.

Each sentence is a text that has not been wrapped yet; a terminal and a page show the same words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

from gputune.knobs import Value, value_text
from gputune.measurement import LEAST_GAIN
from gputune.resources.printable import counted

PLACEHOLDER = "PROFILE"
"""Stands in a command for the path of a profile that is in no file, or fits on no line."""


class By(Enum):
    """How a gain is reached, or why none is shown (`WITHOUT`), in words."""

    APPLY = "by `apply` alone"
    MIXED = "by `gputune tune` or `--numerics mixed`"
    SCRIPT = "by lines in your script"
    """float16 needs a loss scaler."""
    LOADER = "by `--inject-dataloader` or `gputune tune`"
    LOADER_LINES = "by `gputune tune` or a line of your script"
    """As LOADER, but for `--inject-dataloader`, which follows the general number of workers, and that is none."""
    PROGRAM = "by `apply` alone, which recognises it"
    NONE = "nothing to gain"
    UNCERTAIN = "no certain gain of all settings together"
    UNMEASURED = "not measured"
    UNKNOWN = "chosen by an earlier probe, whose figures are not in this file"
    PROVISIONAL = "not known, since the machine was disturbed meanwhile"


WITHOUT = (By.NONE, By.UNCERTAIN, By.UNMEASURED, By.UNKNOWN, By.PROVISIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many times as fast as torch's defaults something was measured to be, with the interval at 99 %."""

    times: float
    interval: tuple[float, float]
    without: tuple[str, ...] = ()
    """The settings that go in as well, and were not measured with the rest: they are not in the figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    kind: Literal["network", "samples", "program"]
    name: str
    """The family (`transformer`, `waiting`; `decoding` or `dataset` for the general choice), or the program's entry."""
    by: By
    times: float | None = None
    """With all that is recommended; None where no figure is known."""
    interval: tuple[float, float] | None = None
    by_apply: Reach | None = None
    by_mixed: Reach | None = None
    """Of networks: what `gputune apply` reaches alone, and with `--numerics mixed`; None where it was not measured."""
    workers: int | None = None
    """Of samples: the recommended number."""
    guard: str = ""
    """Of a program: what became of its loss."""
    is_provisional: bool = False
    """Of a program: whether others disturbed the rounds that tell its gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A setting that is not at torch's default, and its own gain; `family` is empty for the general choice."""

    name: str
    value: Value
    gain: float | None
    family: str = ""


class Step(Enum):
    """What a command of `Next` is for; `AFTER` has the comment behind it."""

    REPAIR = auto()
    LOOK = auto()
    AGAIN = auto()
    MEASURE = auto()
    MEASURE_OTHERS = auto()
    RETRY = auto()
    PROGRAM = auto()
    APPLY = auto()
    MIXED = auto()
    LOADER = auto()
    TUNE = auto()
    HERE = auto()
    TUNE_ANYWAY = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    step: Step
    words: tuple[str, ...]


NETWORKS = {"mlp": "an MLP", "convnet": "a convnet", "transformer": "a transformer", "recurrent": "a recurrent network"}
SAMPLES = {
    "decoding": "samples that cost CPU time", "memory": "slices of memory", "waiting": "samples that are waited for",
    "dataset": "your dataset",
}  # fmt: skip
AFTER: dict[Step, str] = {
    Step.REPAIR: "repairs what is wrong",
    Step.LOOK: "is it mended?",
    Step.AGAIN: "once this machine is idle",
    Step.MEASURE: "most is not measured yet",
    Step.MEASURE_OTHERS: "for all other programs; what was tuned stays",
    Step.RETRY: "what gave no result, once more",
    Step.PROGRAM: "as it was tuned",
    Step.APPLY: "sets torch's flags; the script stays as it is",
    Step.MIXED: "the script stays as it is",
    Step.LOADER: "the script stays as it is",
    Step.HERE: "measures this machine; that profile stays as it is",
    Step.TUNE: "what suits your own script best",
    Step.TUNE_ANYWAY: "whether your own script differs",
}


def gain_texts(gains: Sequence[Gain]) -> Iterator[str]:
    """A sentence for each program and kind of network that gains, one for loading, and one for each other fate."""
    shown = [one for one in gains if one.by not in WITHOUT]
    yield from (_of_program(one) for one in shown if one.kind == "program")
    networks = [one for one in shown if one.kind == "network"]
    yield from map(_of_network, sorted(networks, key=lambda one: -(one.times or 0.0)))
    for by in (By.LOADER, By.LOADER_LINES):
        loading = [one for one in shown if one.kind == "samples" and one.by is by]
        if loading:
            yield f"data loading: {', '.join(map(_of_samples, loading))}; {by.value}"
    for by in WITHOUT:
        same = [name_of(one) for one in gains if one.by is by]
        if same:
            yield f"{by.value}: {', '.join(same)}"
    if not gains:
        yield "what can be gained is not measured"


def name_of(gain: Gain) -> str:
    words = {"network": NETWORKS, "samples": SAMPLES, "program": {}}[gain.kind]
    return words.get(gain.name, gain.name)


def times(value: float) -> str:
    """How many times as fast, with two digits: 1.05, 8.6, 27."""
    return f"{value:.2f}" if value < 1.995 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def chosen_texts(chosen: Sequence[Chosen]) -> list[str]:
    """Each setting with its general value, how many times as fast that is, and in brackets the kinds that differ."""
    names = dict.fromkeys(one.name for one in chosen)
    return [_setting(name, [one for one in chosen if one.name == name]) for name in names]


def _setting(name: str, same: Sequence[Chosen]) -> str:
    said = [_with_gain(one) for one in same if not one.family]
    kinds = [f"{one.family}{_with_gain(one)}" for one in same if one.family]
    return name + "".join(said) + (f" ({', '.join(kinds)})" if kinds else "")


def _with_gain(one: Chosen) -> str:
    hidden = one.value is True or isinstance(one.value, dict)
    return ("" if hidden else f" {value_text(one.value)}") + (f": {times(one.gain)}x" if one.gain else "")


def _of_program(gain: Gain) -> str:
    if gain.times is None:
        return f"{gain.name}: tuned, without a figure"
    interval = " ({:.3g} to {:.3g})".format(*gain.interval) if gain.interval else ""
    probably = "probably " if gain.is_provisional else ""
    said = f"{gain.name}: {probably}{gain.times:.3g} times as fast{interval}"
    return said + (f"; {gain.guard}" if gain.guard else "")


def _of_samples(gain: Gain) -> str:
    fast = f"{times(gain.times)} times as fast " if gain.times else ""
    return f"{fast}with {counted(gain.workers, 'worker')} ({name_of(gain)})"


def _of_network(gain: Gain) -> str:
    said = f"{name_of(gain)}: {times(gain.times or 0.0)} times as fast as torch's defaults"
    alone = _reached(gain.by_apply, By.APPLY.value)
    if gain.by is By.APPLY:
        return f"{said}, all of it {By.APPLY.value}"
    if gain.by is By.MIXED:
        return f"{said}; {alone}, all of it {By.MIXED.value}" if alone else f"{said}, {By.MIXED.value}"
    rest = ", ".join(filter(None, [alone, _reached(gain.by_mixed, By.MIXED.value)]))
    return f"{said} with float16, whose loss scaler takes lines in your script" + (f"; {rest}" if rest else "")


def _reached(reach: Reach | None, way: str) -> str:
    if reach is None:
        return ""
    without = f", not counting {' and '.join(reach.without)}" if reach.without else ""
    fast = "nothing" if reach.times <= LEAST_GAIN or reach.interval[0] <= 1 else times(reach.times)
    return f"{fast} {way}{without}"
