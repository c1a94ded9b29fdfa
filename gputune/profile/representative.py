"""Choosing one profile for several devices or nodes of a kind, each of which has a profile of its own."""

from collections.abc import Iterator, Sequence

from gputune.profile.document import Profile
from gputune.settings import Value


def representative_index(profiles: Sequence[Profile]) -> int:
    """The index of the profile that differs least from all the others; of several such the one with the most samples
    (a quick probe agrees with a longer one in what it did not measure), then the first.

    One profile is taken as a whole, never a mixture: what is recommended for a network was measured as one combination.
    """
    return min(
        range(len(profiles)),
        key=lambda index: (
            sum(len(differing_settings(profiles[index], other)) for other in profiles),
            -sum(len(row.samples) for row in profiles[index].measurements),
        ),
    )


def differing_settings(profile: Profile, other: Profile) -> list[str]:
    """The settings (`cudnn_benchmark`, `convnet.channels_last`) whose values differ, or which only one profile has."""
    mine, theirs = dict(_values(profile)), dict(_values(other))
    return [name for name in {**mine, **theirs} if name not in mine or name not in theirs or mine[name] != theirs[name]]


def _values(profile: Profile) -> Iterator[tuple[str, Value]]:
    for name, choice in profile.settings.items():
        yield name, choice.value
    for family, choices in profile.families.items():
        for name, choice in choices.items():
            yield f"{family}.{name}", choice.value
