"""One profile for several devices or nodes of a kind, and the programs that outlive the profile they stand in."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import accumulate

from gputune.advice import Choice
from gputune.host.stderr import say
from gputune.profile.document import Profile, Program
from gputune.profile.limits import MOST_BYTES, MOST_PROGRAMS, program_bytes
from gputune.version import __version__, release

ROOM = MOST_BYTES // 4
"""The most bytes that all programs of a profile may take together: beside them the largest profile that a probe writes
must still fit into the limit of a profile's file."""


def with_programs(profile: Profile, programs: Iterable[Program], tell: Callable[[str], None] = say) -> Profile:
    """The profile with these programs beside its own, the one created last first; of one program the later stays.
    `tell` gets one line with the names of those for which there is no room.
    """
    latest = {one.key: one for one in sorted((*profile.programs, *programs), key=lambda one: one.created)}
    newest = sorted(latest.values(), key=lambda one: one.created, reverse=True)
    sizes = accumulate(program_bytes(asdict(one)) for one in newest[:MOST_PROGRAMS])
    count = sum(size <= ROOM for size in sizes)
    if count < len(newest):
        tell(f"no room in a profile for the oldest of its programs: {', '.join(one.entry for one in newest[count:])}")
    if not newest:
        return profile
    # An earlier gputune would refuse programs in a file of its own version.
    written_by = max(profile.gputune, __version__, key=release)
    return replace(profile, programs=tuple(newest[:count]), gputune=written_by)


def representative_index(profiles: Sequence[Profile]) -> int:
    """The index of the profile that differs least from the others; of several the one with the most samples, then the
    first. What it did not measure counts as a difference. Profiles are never mixed: a combination was measured as one.
    """

    def distance(index: int) -> tuple[int, int]:
        own = profiles[index]
        samples = sum(len(row.samples) for row in own.measurements)
        return sum(_disagreements(own, other) for other in profiles), -samples

    return min(range(len(profiles)), key=distance)


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
