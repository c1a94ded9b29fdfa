"""From Facts and Measurements to a Profile: every setting and check is asked. Pure, so advice can be replayed."""

from collections.abc import Mapping, Sequence

from gputune import advice, checks, knobs
from gputune.advice import Choice, _training_rows, dataloader_prefetch_factor, dataloader_workers
from gputune.advice._evidence import NOT_MEASURED, unmeasured
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.knobs.dataloader_prefetch_factor import AHEAD
from gputune.knobs.dataloader_workers import WORKERS
from gputune.measurement import Measurement
from gputune.probing.standing import GENERAL, NOTHING_STANDS, Incumbent, Standing, final, provisional, standing_of
from gputune.profile import SCHEMA, Profile, fingerprint
from gputune.version import __version__

__all__ = ["NOTHING_STANDS", "Standing", "choices", "families", "profile_of", "provisional", "standing_of"]


def choices(
    facts: Facts, measurements: Sequence[Measurement], standing: Standing = NOTHING_STANDS
) -> dict[str, Choice]:
    incumbents = dict(_beside_own_dataset(standing.get(GENERAL, {}), measurements))
    own = {name: advice.recommend(name, facts, measurements) for name in knobs.names()}
    workers = final(facts, measurements, own[WORKERS], incumbents.get(WORKERS), (WORKERS, GENERAL))
    # A prefetch_factor was chosen for a number of workers, and says nothing about another number.
    own[AHEAD] = dataloader_prefetch_factor.of_workers(measurements, workers.value)
    if workers.since is None:
        incumbents.pop(AHEAD, None)
    elif AHEAD in incumbents:
        own[AHEAD] = unmeasured(knobs.load(AHEAD).DEFAULT, NOT_MEASURED)
    return {
        name: workers if name == WORKERS else final(facts, measurements, choice, incumbents.get(name), (name, GENERAL))
        for name, choice in own.items()
    }


def families(
    facts: Facts, measurements: Sequence[Measurement], standing: Standing = NOTHING_STANDS
) -> dict[str, dict[str, Choice]]:
    """The choices that differ by kind of network, or of a dataset's samples, for each kind measured, now or before."""
    able = {name: rule for name in knobs.names() if hasattr(rule := advice.of(name), "of_family")}
    kinds = dict.fromkeys((*_training_rows.families(measurements), *dataloader_workers.FAMILIES, *standing))
    chosen: dict[str, dict[str, Choice]] = {kind: {} for kind in kinds if kind != GENERAL}
    for kind, own in chosen.items():
        incumbents = _beside_own_dataset(standing.get(kind, {}), measurements)
        for name, rule in able.items():
            choice = rule.of_family(facts, measurements, kind)
            if choice is None and name in incumbents:
                choice = unmeasured(knobs.load(name).DEFAULT, NOT_MEASURED)
            if choice is not None:
                own[name] = final(facts, measurements, choice, incumbents.get(name), (name, kind))
    return {kind: own for kind, own in chosen.items() if own}


def _beside_own_dataset(
    incumbents: Mapping[str, Incumbent], measurements: Sequence[Measurement]
) -> Mapping[str, Incumbent]:
    """Beside the user's own dataset, which comes first, nothing stands that was measured on synthetic samples."""
    if dataloader_workers.bench_of(measurements) != "dataset":
        return incumbents
    return {name: one for name, one in incumbents.items() if not name.startswith("dataloader_")}


def profile_of(  # noqa: PLR0913 - what a profile follows from
    facts: Facts,
    measurements: Sequence[Measurement],
    device: str,
    *,
    created: str,
    gaps: Sequence[Gap] = (),
    standing: Standing = NOTHING_STANDS,
) -> Profile:
    """The profile of `device`; `created` is in ISO 8601. The facts' gaps are added to `gaps`, the benches'."""
    return Profile(
        schema=SCHEMA,
        created=created,
        gputune=__version__,
        fingerprint=fingerprint(facts, device),
        settings=choices(facts, measurements, standing),
        families=families(facts, measurements, standing),
        measurements=tuple(measurements),
        findings=checks.run(facts, measurements),
        gaps=(*facts.gaps, *gaps),
    )
