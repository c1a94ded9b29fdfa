"""What a probe is asked for, the devices that it means, and which benches are run, in which order and for how long."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gputune import benches
from gputune.bench_process import BUDGETS, Budget, MatmulShape, UserDataset
from gputune.bench_process.messages import BenchRequest
from gputune.errors import MeasureError, UsageError, require
from gputune.facts import Facts
from gputune.facts.gap import Gap

ALL = "all"
"""The value of `--device` for all GPUs of this node at once."""

OPTIONS = {"shapes": "FILE", "dataset": "FILE.py:CALLABLE"}
"""The options that name an input of a bench, each a field of ProbeRequest, and the form of their argument."""
PROMISED_SECONDS: Mapping[str, Mapping[Budget, float]] = {
    "cuda": {"quick": 10, "standard": 60, "thorough": 600},
    "cpu": {"quick": 10, "standard": 60, "thorough": 300},
}
"""How long the command takes from its start to its end, by kind of device, where nothing disturbs it. What only the
user can name, and the comparison of all GPUs, take their time on top."""
OWN_SECONDS = 1.1
"""The seconds of a probe's command that are kept back from the benches. Before them Python starts and imports gputune,
which takes 0.2 to 0.5 s; after them processes end and the profile is written, which takes 0.2 to 0.6 s."""
OVERRUN_SHARE = 0.02
"""The part of a probe's time that is kept back for benches that take longer than their seconds."""
ESSENTIAL_RANK = 4
"""Benches up to this rank are essential: they decide what gains most, and give up time for one another only."""
LEAST_SHARE = 0.6
"""A bench that would get a smaller share of its seconds is left out: with less, a comparison that would reach its look
at 20 pairs does not even reach the one at 12."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """The input of a probe: `device` is auto, cpu, cuda, cuda:N or all; `only` names the benches to run (by default all
    that the budget has time for); `shapes` are the user's matmuls, `dataset` the user's dataset.
    """

    device: str = "auto"
    budget: Budget = "standard"
    only: Sequence[str] = ()
    shapes: Sequence[MatmulShape] = ()
    dataset: Sequence[UserDataset] = ()

    def named(self, option: str) -> Sequence[object]:
        """Return what the user named by an option; nothing for one that a probe does not have."""
        return tuple(getattr(self, option)) if option in OPTIONS else ()


@dataclass(frozen=True, slots=True)
class PlannedBench:
    bench: benches.Bench
    request: BenchRequest
    least: float
    """The seconds below which it is left out."""

    @property
    def name(self) -> str:
        return self.bench.__name__.rpartition(".")[2]

    @property
    def seconds(self) -> float:
        return self.request.seconds

    def with_seconds(self, seconds: float) -> PlannedBench:
        return replace(self, request=replace(self.request, seconds=seconds))

    @property
    def traits(self) -> benches.BenchTraits:
        return benches.traits(self.bench)

    @property
    def is_essential(self) -> bool:
        return self.bench.RANK <= ESSENTIAL_RANK

    @property
    def shares_the_budget(self) -> bool:
        return self.traits.option is None and not self.traits.side_by_side


def check_names(request: ProbeRequest) -> None:
    """Raises UsageError for an unknown budget or bench, and for a bench that this request cannot run."""
    require(request.budget, BUDGETS, "budget", "--budget")
    for name in request.only:
        require(name, benches.names(), "bench", "--only")
        traits = benches.traits(benches.load(name))
        if traits.side_by_side and request.device != ALL:
            raise UsageError(f"--only {name}: compares the GPUs of a node", f"add --device {ALL}")
        if traits.option is None or request.named(traits.option):
            continue
        if traits.option not in OPTIONS:
            raise UsageError(f"--only {name}: is no part of a probe", f"use gputune {name.replace('_', '-')}")
        raise UsageError(
            f"--only {name}: measures what --{traits.option} names", f"add --{traits.option} {OPTIONS[traits.option]}"
        )


def plan(device: str, request: ProbeRequest) -> list[PlannedBench]:
    """Return the benches to run, the most valuable first, each with its seconds."""
    return [entry for name in benches.names() if _wanted(entry := _entry(name, device, request), request)]


def imports(request: ProbeRequest) -> list[str]:
    entries = [entry for device in ("cuda", "cpu") for entry in plan(device, request)]
    return list(dict.fromkeys(module for entry in entries for module in entry.traits.imports))


def seconds_for(device: str, request: ProbeRequest) -> float:
    """Return how long the benches may measure from the start of the probe: without end if asked for by name."""
    if request.only:
        return math.inf
    return (1 - OVERRUN_SHARE) * PROMISED_SECONDS[benches.kind_of(device)][request.budget] - OWN_SECONDS


def planned(entries: Sequence[PlannedBench]) -> float:
    return sum(entry.seconds for entry in entries)


def fitting(entries: Sequence[PlannedBench], seconds: float) -> list[PlannedBench]:
    """Return the entries that there is time for: the essential ones first, and the others in what these leave."""
    sharing = [entry for entry in entries if entry.shares_the_budget]
    essential = fit([entry for entry in sharing if entry.is_essential], seconds)
    left = seconds - planned(essential)
    others = fit([entry for entry in sharing if not entry.is_essential], left)
    fitted = {entry.name: entry for entry in (*essential, *others)}
    return [fitted.get(entry.name, entry) for entry in entries if entry.name in fitted or not entry.shares_the_budget]


def left_out(entries: Sequence[PlannedBench]) -> list[Gap]:
    return [Gap(fact=f"bench.{entry.name}", reason="not measured in this budget", cause="no_time") for entry in entries]


def fit(entries: Sequence[PlannedBench], seconds: float) -> list[PlannedBench]:
    """Return the entries that fit into `seconds`: those whose least does, the least valuable of them with less."""
    kept: list[PlannedBench] = []
    for entry in entries:
        if sum(one.least for one in kept) + entry.least <= seconds:
            kept.append(entry)
    too_much = planned(kept) - seconds
    for place in reversed(range(len(kept))):
        entry = kept[place]
        cut = min(max(0.0, too_much), entry.seconds - entry.least)
        too_much -= cut
        kept[place] = entry.with_seconds(entry.seconds - cut)
    return kept


def _wanted(entry: PlannedBench, request: ProbeRequest) -> bool:
    if entry.traits.option is not None and not request.named(entry.traits.option):
        return False
    if entry.traits.side_by_side and request.device != ALL:
        return False
    return entry.name in request.only if request.only else entry.seconds > 0


def _entry(name: str, device: str, request: ProbeRequest) -> PlannedBench:
    bench = benches.load(name)
    traits, kind = benches.traits(bench), benches.kind_of(device)
    # A bench that was asked for by name gets the time of the next budget that has some for it.
    budgets = BUDGETS[BUDGETS.index(request.budget) :] if name in request.only else (request.budget,)
    of_budgets = bench.SECONDS.get(kind, {})
    each = float(next((of_budgets[one] for one in budgets if of_budgets.get(one)), 0))
    seconds = each if traits.option is None else each * len(request.named(traits.option))
    shapes, dataset = tuple(request.shapes), tuple(request.dataset)
    own = BenchRequest(bench=bench.__name__, seconds=seconds, budget=request.budget, shapes=shapes, dataset=dataset)
    least = max(LEAST_SHARE * seconds, traits.least_seconds.get(kind, 0.0))
    return PlannedBench(bench, own, min(seconds, least))


def device_of(facts: Facts, requested: str) -> str:
    """The device by torch's name. Raises UsageError for another word, MeasureError for a GPU that torch cannot see."""
    kind, _, index = requested.partition(":")
    visible = _visible(facts)
    if requested == "auto":
        return f"cuda:{visible[0]}" if visible else "cpu"
    if requested == "cpu":
        return "cpu"
    if kind != "cuda" or not ((index.isascii() and index.isdigit()) or requested == "cuda"):
        raise UsageError(f"--device {requested}: there is no such device", "choose from auto, cpu, cuda, cuda:N")
    if int(index or 0) not in visible:
        raise _not_there(requested, visible)
    return f"cuda:{int(index or 0)}"


def devices_of(facts: Facts) -> tuple[list[str], list[Gap]]:
    """The GPUs of the first one's model, since one profile holds for all; a Gap for each other. Raises MeasureError."""
    visible = _visible(facts)
    if not visible:
        raise _not_there(ALL, visible)
    names = {f"cuda:{index}": gpu.name for index in visible if (gpu := facts.device_gpu(f"cuda:{index}"))}
    first, *_ = names.values()
    gaps = [
        Gap(fact=device, reason=f"not measured, since it is another model ({name}): gputune probe --device {device}")
        for device, name in names.items()
        if name != first
    ]
    return [device for device, name in names.items() if name == first], gaps


def _visible(facts: Facts) -> list[int]:
    return sorted(gpu.torch_index for gpu in facts.gpus if gpu.torch_index is not None)


def _not_there(requested: str, visible: Sequence[int]) -> MeasureError:
    seen = f"torch sees {len(visible)} GPU{'' if len(visible) == 1 else 's'}" if visible else "torch sees no GPU"
    return MeasureError(f"--device {requested}: {seen}", "see: gputune check, or measure the CPU with --device cpu")
