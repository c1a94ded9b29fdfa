"""The choices and values of settings in a profile's plain data, held against what each setting allows."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gputune import settings
from gputune.inject import decision
from gputune.settings import LEVELS, Numerics
from gputune.strict_types import Mismatch, Place, convert

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
    """Each program's values by their effect on results, with their place."""
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
    """Raises Mismatch for a value that the setting does not allow."""
    setting = settings.load(name)
    convert(setting.VALUE, value)
    low, high = getattr(setting, "LIMITS", (None, None))
    for number in value.values() if isinstance(value, dict) else [value]:
        if low is not None and number is not None and not low <= number <= high:
            raise Mismatch(f"a number from {low} to {high} expected, {number} given")


def check_within(level: Numerics, name: str, value: Any) -> None:
    """Raises Mismatch for a value that the setting does not allow, or whose effect on results is beyond the level."""
    check_value(name, value)
    setting = settings.load(name)
    if not decision.is_default(setting, value) and decision.is_beyond(setting, value, level):
        raise Mismatch(f"its effect on results is {setting.NUMERICS}, which is beyond {level}")
