"""One profile for several devices of a kind, each of which has one of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputune.profile.document import Profile
from gputune.settings import Value


def common(profiles: Sequence[Profile]) -> int:
    """The number of the profile that differs least from all the others; of several the first.

    One of them as a whole, and no mixture: what is recommended for a network was measured as one combination.
    """
    return min(range(len(profiles)), key=lambda one: sum(len(differing(profiles[one], other)) for other in profiles))


def differing(profile: Profile, other: Profile) -> list[str]:
    """The settings (`cudnn_benchmark`, `convnet.channels_last`) for which the two hold different values, or only one holds any."""
    mine, theirs = dict(_values(profile)), dict(_values(other))
    return [name for name in {**mine, **theirs} if name not in mine or name not in theirs or mine[name] != theirs[name]]


def _values(profile: Profile) -> Iterator[tuple[str, Value]]:
    for name, choice in profile.settings.items():
        yield name, choice.value
    for family, choices in profile.families.items():
        for name, choice in choices.items():
            yield f"{family}.{name}", choice.value
