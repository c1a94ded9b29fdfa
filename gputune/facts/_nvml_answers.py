"""Converters of NVML's answers to the types that they should have; each raises `Unreadable` for any other answer."""

from collections.abc import Callable, Sequence
from typing import Any

from gputune.facts import cpu_list
from gputune.host import Unreadable


def whole(value: Any) -> int:
    """A whole number of at least zero: everything that NVML counts is unsigned."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _strange(value)
    return value


def positive(value: Any) -> int:
    """A whole number above zero, such as a link's width, for which NVML answers 0 if it does not know."""
    if whole(value) == 0:
        raise _strange(value)
    return whole(value)


def flag(value: Any) -> bool:
    """A bool, for which NVML answers 0 or 1."""
    if whole(value) > 1:
        raise _strange(value)
    return bool(value)


def text(value: Any) -> str:
    """A non-empty text."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str) or not value:
        raise _strange(value)
    return value


def watts(milliwatts: Any) -> float:
    return whole(milliwatts) / 1000


def sequence(value: Any, length: int | None = None) -> Sequence[Any]:
    """A list or tuple, with exactly `length` items if that is given."""
    if not isinstance(value, (list, tuple)) or len(value) != (len(value) if length is None else length):
        raise _strange(value)
    return value


def mask(words: Any) -> frozenset[int]:
    """The CPUs in a bit mask, at least one."""
    cpus = cpu_list.from_mask([whole(word) for word in sequence(words)])
    if not cpus:
        raise _strange(words)
    return cpus


def one_of(names: Sequence[str]) -> Callable[[Any], str]:
    """A converter of one of NVML's enumerations to the names of its values, which count from 0."""

    def name(value: Any) -> str:
        number = whole(value)
        if number >= len(names):
            raise _strange(value)
        return names[number]

    return name


def dotted(pair: Any) -> str:
    """A pair such as (9, 0) as "9.0"."""
    major, minor = pair
    return f"{whole(major)}.{whole(minor)}"


def _strange(value: Any) -> Unreadable:
    return Unreadable(f"NVML answered {str(value)[:60]!r}")
