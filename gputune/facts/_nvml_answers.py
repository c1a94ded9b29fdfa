"""NVML's answers in the type that they should have; a driver that answers something else makes a gap, not a fact."""

from typing import Any

from gputune.host import Unreadable


def whole(value: Any) -> int:
    """A whole number of at least zero: all that NVML counts is unsigned."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Unreadable(f"NVML answered {str(value)[:60]!r}")
    return value


def text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str) or not value:
        raise Unreadable(f"NVML answered {str(value)[:60]!r}")
    return value


def watts(milliwatts: Any) -> float:
    return whole(milliwatts) / 1000


def dotted(pair: Any) -> str:
    """(9, 0) as "9.0"."""
    major, minor = pair
    return f"{whole(major)}.{whole(minor)}"
