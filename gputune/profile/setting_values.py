"""The choices in a profile's plain data, and their values held against what each setting allows."""

from collections.abc import Iterator
from typing import Any

from gputune import settings
from gputune.strict_types import Mismatch, Place, convert


def choices(data: dict[str, Any]) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Each mapping from settings to choices, with its place. What has another shape is left to the document's types."""
    groups: list[tuple[Place, Any]] = [(("settings",), data.get("settings"))]
    groups += [(("families", family), group) for family, group in entries(data.get("families"))]
    yield from ((place, group) for place, group in groups if isinstance(group, dict))


def entries(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def check(name: str, choice: Any) -> None:
    """Raises Mismatch where the choice's value is not one that the setting allows."""
    if not isinstance(choice, dict) or "value" not in choice:
        return
    setting, value = settings.load(name), choice["value"]
    try:
        convert(setting.VALUE, value)
    except Mismatch as mismatch:
        raise mismatch.below("value") from None
    low, high = getattr(setting, "LIMITS", (None, None))
    for number in value.values() if isinstance(value, dict) else [value]:
        if low is not None and number is not None and not low <= number <= high:
            raise Mismatch(f"a number from {low} to {high} expected, {number} given", ("value",))
