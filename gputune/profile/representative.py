"""Choosing one profile for several devices or nodes of a kind, each of which has a profile of its own."""

from collections.abc import Iterator, Sequence

from gputune.profile.document import Profile
from gputune.settings import Choice


def representative_index(profiles: Sequence[Profile]) -> int:
    """The index of the profile that differs least from what all the others measured; of several such the one with the
    most samples, then the first. What another one measured and this one did not counts as a difference, so a quick
    probe, which agrees with a longer one but measured less, does not stand for it.

    One profile is taken as a whole, never a mixture: what is recommended for a network was measured as one combination.
    """
    return min(
        range(len(profiles)),
        key=lambda index: (
            sum(_disagreements(profiles[index], other) for other in profiles),
            -sum(len(row.samples) for row in profiles[index].measurements),
        ),
    )


def _disagreements(profile: Profile, other: Profile) -> int:
    """How many settings that the other profile measured, or decided, have another value in this one, or none."""
    mine, theirs = (
        {name: choice.value for name, choice in _choices(one) if not choice.unmeasured} for one in (profile, other)
    )
    return sum(name not in mine or mine[name] != value for name, value in theirs.items())


def differing_settings(profile: Profile, other: Profile) -> list[str]:
    """The settings (`cudnn_benchmark`, `convnet.channels_last`) whose values differ, or which only one profile has."""
    mine, theirs = ({name: choice.value for name, choice in _choices(one)} for one in (profile, other))
    return [name for name in {**mine, **theirs} if name not in mine or name not in theirs or mine[name] != theirs[name]]


def _choices(profile: Profile) -> Iterator[tuple[str, Choice]]:
    yield from profile.settings.items()
    for family, choices in profile.families.items():
        for name, choice in choices.items():
            yield f"{family}.{name}", choice
