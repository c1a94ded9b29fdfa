"""From Facts and Measurements to a Profile: every setting and check is asked. Pure, so advice can be replayed."""

from collections.abc import Iterable, Mapping, Sequence

from gputune import checks
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.profile import SCHEMA, Profile, fingerprint
from gputune.recommend.trust import believed
from gputune.settings import Choice, _training, all_settings, dataloader_workers
from gputune.version import __version__


def choices(facts: Facts, measurements: Sequence[Measurement]) -> dict[str, Choice]:
    """The general choice of every setting."""
    return {
        name: believed(facts, measurements, setting, setting.recommend(facts, measurements))
        for name, setting in all_settings().items()
    }


def families(facts: Facts, measurements: Sequence[Measurement]) -> dict[str, dict[str, Choice]]:
    """The choices that differ by kind of network, or of a dataset's samples, for each kind measured."""
    able = {name: setting for name, setting in all_settings().items() if hasattr(setting, "of_family")}
    chosen = {
        kind: {
            name: believed(facts, measurements, setting, choice)
            for name, setting in able.items()
            if (choice := setting.of_family(facts, measurements, kind))
        }
        for kind in (*_training.families(measurements), *dataloader_workers.FAMILIES)
    }
    return {kind: own for kind, own in chosen.items() if own}


def provisional(
    settings: Mapping[str, Choice], families: Mapping[str, Mapping[str, Choice]]
) -> dict[str, tuple[str, ...]]:
    """The settings whose choice is provisional, in general or for a family, and the benches that it waits for."""
    waiting: dict[str, Iterable[str]] = {}
    for group in (settings, *families.values()):
        for name, choice in group.items():
            if choice.provisional:
                waiting[name] = dict.fromkeys((*waiting.get(name, ()), *choice.evidence))
    return {name: tuple(found) for name, found in waiting.items()}


def profile_of(
    facts: Facts, measurements: Sequence[Measurement], device: str, *, created: str, gaps: Sequence[Gap] = ()
) -> Profile:
    """The profile of `device`; `created` is in ISO 8601. The facts' gaps are added to `gaps`, the benches'."""
    return Profile(
        schema=SCHEMA,
        created=created,
        gputune=__version__,
        fingerprint=fingerprint(facts, device),
        settings=choices(facts, measurements),
        families=families(facts, measurements),
        measurements=tuple(measurements),
        findings=checks.run(facts, measurements),
        gaps=(*facts.gaps, *gaps),
    )
