"""A profile's plain data: its choices held against what each setting allows, and files of other versions of gputune.

Whoever adds a key, a list or a setting raises the version. So an unknown name in a file of this version or an older one
is a mistake, and in a newer file it is left out: a node that is upgraded last still applies all that it understands.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from gputune import knobs
from gputune.advice.dataloader_workers import by_kind
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.knobs import LEVELS, Numerics
from gputune.measurement import Measurement
from gputune.profile.document import Profile, Program
from gputune.strict_types import Mismatch, Place, convert, unknown
from gputune.version import __version__, release

Check = Callable[[str, Any], None]
"""Raises Mismatch for a setting's name and what the file has for it."""


def groups(data: dict[str, Any]) -> Iterator[tuple[Place, dict[str, Any], Check]]:
    """Each mapping from settings to choices or values, with its place and what its entries are held against."""
    found: list[tuple[Place, Any, Check]] = [(("settings",), data.get("settings"), check)]
    found += [(("families", family), group, check) for family, group in entries(data.get("families"))]
    found += [((*place, "settings"), program.get("settings"), check) for place, program in programs(data)]
    found += [
        ((*place, level), by_numerics.get(level), partial(check_within, level))
        for place, by_numerics in levels(data)
        for level in LEVELS
    ]
    yield from ((place, group, held) for place, group, held in found if isinstance(group, dict))


def programs(data: dict[str, Any]) -> list[tuple[Place, dict[str, Any]]]:
    """Each program, with its place. What has another shape is left to the document's types, here and elsewhere."""
    listed = data.get("programs")
    numbered = enumerate(listed if isinstance(listed, list) else [])
    return [(("programs", str(number)), program) for number, program in numbered if isinstance(program, dict)]


def levels(data: dict[str, Any]) -> list[tuple[Place, dict[str, Any]]]:
    found = [((*place, "by_numerics"), program.get("by_numerics")) for place, program in programs(data)]
    return [(place, by_numerics) for place, by_numerics in found if isinstance(by_numerics, dict)]


def entries(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def check(name: str, choice: Any) -> None:
    """Raises Mismatch where the choice's value is not one that the setting allows."""
    if not isinstance(choice, dict) or "value" not in choice:
        return
    try:
        check_value(name, choice["value"])
    except Mismatch as mismatch:
        raise mismatch.below("value") from None


def check_value(name: str, value: Any) -> None:
    setting = knobs.load(name)
    convert(setting.VALUE, value)
    low, high = getattr(setting, "LIMITS", (None, None))
    for number in value.values() if isinstance(value, dict) else [value]:
        if low is not None and number is not None and not low <= number <= high:
            raise Mismatch(f"a number from {low} to {high} expected, {number} given")


def check_within(level: Numerics, name: str, value: Any) -> None:
    """Raises Mismatch for a value that the setting does not allow, or whose effect on results is beyond the level."""
    check_value(name, value)
    setting = knobs.load(name)
    if not knobs.is_default(setting, value) and knobs.is_beyond(setting, value, level):
        raise Mismatch(f"its effect on results is {setting.NUMERICS}, which is beyond {level}")


UNTIL_0_1_0 = ("bf16_reduction", "cudnn_benchmark_limit", "fp16_reduction")
UNTIL_0_4_0 = ("dataloader_persistent_workers", "dataloader_threads")
RETIRED = frozenset((*UNTIL_0_1_0, *UNTIL_0_4_0))
"""Settings of earlier versions. A file may still hold them; they have no effect."""
ROWS = {"programs": Program, "measurements": Measurement, "findings": Finding, "gaps": Gap}
"""The lists of a profile whose rows are understood one by one."""
MOST_NAMED = 5


def drop_retired(data: dict[str, Any]) -> None:
    for _, group, _ in groups(data):
        for name in RETIRED.intersection(group).difference(knobs.names()):
            del group[name]


def completed(profile: Profile) -> Profile:
    """The profile with the workers by kind of samples, which files before 0.2.0 left to their measurements."""
    if release(profile.gputune) >= release("0.2.0"):
        return profile
    own = {kind: {"dataloader_workers": choice} for kind, choice in by_kind(profile.measurements).items()}
    return replace(profile, families={**own, **profile.families})


def is_newer(version: str) -> bool:
    """Whether a later gputune than this one wrote the file. Raises ValueError for what is no version."""
    return release(version) > release(__version__)


def drop_unknown(data: dict[str, Any]) -> list[Place]:
    """Take out of a newer profile's data what this version does not understand, and return the places of that."""
    dropped = [*_drop_choices(data), *_drop_levels(data), *_drop_keys(data), *_drop_rows(data)]
    return list(dict.fromkeys(tuple("*" if key.isdigit() else key for key in place) for place in dropped))


def summary(places: list[Place]) -> str:
    named = [".".join(place)[:60] for place in places[:MOST_NAMED]]
    more = [f"{len(places) - MOST_NAMED} more"] if len(places) > MOST_NAMED else []
    return ", ".join(named + more)


def _drop_choices(data: dict[str, Any]) -> Iterator[Place]:
    for place, group, check in groups(data):
        for name in list(group):
            if name not in knobs.names() or not _passes(check, name, group[name]):
                del group[name]
                yield (*place, name)


def _drop_levels(data: dict[str, Any]) -> Iterator[Place]:
    for place, by_numerics in levels(data):
        for level in [level for level in by_numerics if level not in knobs.LEVELS]:
            del by_numerics[level]
            yield (*place, level)


def _drop_keys(data: dict[str, Any]) -> Iterator[Place]:
    for place in list(unknown(Profile, data)):
        holder: Any = data
        for key in place[:-1]:
            holder = holder[int(key) if isinstance(holder, list) else key]
        del holder[place[-1]]
        yield place


def _drop_rows(data: dict[str, Any]) -> Iterator[Place]:
    """Rows with a value that this version does not know, as a severity. A program's own rows come before it."""
    for place, part in [*programs(data), ((), data)]:
        for name, kind in ROWS.items():
            rows = part.get(name)
            if isinstance(rows, list):
                fits = [_passes(convert, kind, row) for row in rows]
                part[name] = [row for row, fit in zip(rows, fits, strict=True) if fit]
                yield from ((*place, name, str(number)) for number, fit in enumerate(fits) if not fit)


def _passes(check: Callable[..., object], *arguments: Any) -> bool:
    try:
        check(*arguments)
    except Mismatch:
        return False
    return True
