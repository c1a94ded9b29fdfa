"""From what was measured to the program in a profile. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal

from gputune.advice import Choice
from gputune.advice._evidence import range_text
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.live.models import MOST_KINDS, ModelKey
from gputune.measurement import BY_FAR, MORE_LOOKS, Comparison, Measurement, rounded
from gputune.probing import recommending
from gputune.profile import Guard, Profile, Program, fingerprint, now
from gputune.profile.document import MOST_DIMENSIONS, MOST_MODELS, MOST_SHAPES
from gputune.search.choice import Tried, best_by_level, choice, gaining, uses_more_memory
from gputune.search.combination import DEFAULT, Combination
from gputune.trials.search_result import SearchResult

BENCH = "tune"
MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class TuneResult:
    program: Program
    profile: Profile
    """A profile of this machine with nothing measured but the program."""
    combination: Combination
    gain: Comparison | None
    """To torch's defaults; None where nothing is gained."""
    more_memory: float | None = None
    """How many times the memory of torch's defaults it takes, where that is more."""
    disturbed: str = ""
    """Who else used the machine meanwhile: a gain is then provisional, unless a GPU works twice as fast; without a gain
    nothing can be told.
    """
    scarce: Literal["length", "steps", "minutes", "seconds"] = "seconds"
    """What was used up first: the program's own steps, the user's number of steps, the minutes for the tune, or the
    search's time.
    """
    length: int | None = None
    """After how many steps, or calls, the program ended by itself; None if it was not seen to."""
    waits: float = 0.0
    """The share of a step with torch's defaults in which the program waits for its data."""


def ranking(measured: SearchResult) -> list[tuple[Tried, Comparison]]:
    """The combinations of the last comparison that gain over torch's defaults, the one to take first."""
    default, left = default_of(measured), dict(gaining(measured.arms))
    ranked: list[tuple[Tried, Comparison]] = []
    while left:
        best = choice(list(left), default.peak_bytes, must_be_certain=True)
        ranked.append((best, left.pop(best)))
    return ranked


def default_of(measured: SearchResult) -> Tried:
    return next(arm for arm in measured.arms if arm.combination == DEFAULT)


def tuned(
    measured: SearchResult, found: tuple[Tried, Comparison] | None, machine: Facts, device: str, guard: Guard
) -> TuneResult:
    """The result with the combination that was found, or None for torch's defaults."""
    default = default_of(measured)
    combination = found[0].combination if found else DEFAULT
    # Beside others a step whose threads share work may wait for a CPU 300 times as long as it takes.
    is_far = found is not None and found[1].low >= BY_FAR and device.startswith("cuda")
    disturbed = "" if is_far else measured.disturbed
    # No other arm of the last comparison counts for any level.
    accepted = [arm for arm in measured.arms if set(arm.combination.items) <= set(combination.items)]
    levels = {level: one.values for level, one in best_by_level(accepted) if one != DEFAULT}
    left = [Gap(fact=name, reason=why) for name, why in measured.left.items()]
    failed = [Gap(fact=name, reason=why, cause="exited") for name, why in measured.failed.items()]
    program = Program(
        entry=measured.hello.entry[:255],
        created=now(),
        fingerprint=replace(fingerprint(machine, device), torch=measured.hello.torch),
        models=_bounded(measured.found.models),
        input_shapes=tuple(tuple(shape[:MOST_DIMENSIONS]) for shape in measured.found.shapes[:MOST_SHAPES]),
        world_size=measured.hello.world,
        settings=_choices(combination, found[1], measured, is_provisional=bool(disturbed)) if found else {},
        by_numerics=levels,
        trains=measured.found.trains,
        dataset=measured.dataset if combination.workers else None,
        measurements=tuple(_rows(measured.tried, device, measured.conditions)),
        guard=guard,
        gaps=(*left, *failed),
    )
    more = uses_more_memory(found[0], default.peak_bytes) if found else False
    memory = (found[0].peak_bytes or 0) / (default.peak_bytes or 1) if found and more else None
    unmeasured = recommending.profile_of(machine, (), device, created=program.created)
    return TuneResult(
        program=program, profile=unmeasured, combination=combination, gain=found[1] if found else None,
        more_memory=memory, waits=measured.waits, disturbed=disturbed,
        length=measured.length,
        scarce="length" if measured.scarcest == "steps" and measured.length is not None else measured.scarcest,
    )  # fmt: skip


def _bounded(models: Sequence[ModelKey]) -> tuple[ModelKey, ...]:
    """As many models as a program holds. Their layers are left out where they are of too many kinds together."""
    kept = tuple(models[:MOST_MODELS])
    return (
        kept if sum(len(one.layers) for one in kept) <= MOST_KINDS else tuple(replace(one, layers={}) for one in kept)
    )


def _choices(
    combination: Combination, found: Comparison, measured: SearchResult, *, is_provisional: bool
) -> dict[str, Choice]:
    """Settings were not measured one by one: what is known is how fast they are together."""
    kind = "steps" if measured.found.trains else "calls"
    together = "alone" if len(combination.items) == 1 else f"all {len(combination.items)} settings together"
    reason = f"the program's own {kind} ran {range_text(found)} as fast as with torch's defaults, {together}"
    if is_provisional:
        reason = f"probably {reason}; {measured.disturbed}"
    choice = Choice(
        value=None, gain=found.ratio, interval=found.interval, reason=reason, evidence=(BENCH,),
        provisional=is_provisional,
    )  # fmt: skip
    return {name: replace(choice, value=value) for name, value in combination.items}


def _rows(tried: Sequence[Tried], device: str, conditions: dict[str, float]) -> list[Measurement]:
    rows: list[Measurement] = []
    for arm in tried:
        if not arm.samples:
            continue
        params: dict[str, Any] = {"stage": arm.stage, **arm.combination.values}
        own = {"waited": rounded(waited)} if (waited := median(arm.waits or [0.0])) > 0 else {}
        if arm.peak_bytes is not None:
            own["peak_mib"] = float(arm.peak_bytes // MIB)
        if arm.device_seconds:
            own["device_ms"] = rounded(1000 * arm.device_seconds)
        samples = tuple(rounded(sample) for sample in arm.samples[: MORE_LOOKS[-1]])
        rows.append(
            Measurement(
                bench=BENCH, metric="throughput", unit="steps/s", samples=samples, params=params, device=device,
                conditions=own if rows else own | conditions,
            )
        )  # fmt: skip
    return rows
