"""NVML's answers in the type that they should have; a driver that answers something else makes a gap, not a fact."""

from collections.abc import Callable, Sequence
from typing import Any

from gputune.facts import cpu_list
from gputune.host import Unreadable


def whole(value: Any) -> int:
    """A whole number of at least zero: all that NVML counts is unsigned."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _strange(value)
    return value


def positive(value: Any) -> int:
    """Of what is never nothing, such as a link's width, NVML answers 0 where it does not know."""
    if whole(value) == 0:
        raise _strange(value)
    return whole(value)


def flag(value: Any) -> bool:
    """NVML's 0 or 1."""
    if whole(value) > 1:
        raise _strange(value)
    return bool(value)


def text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str) or not value:
        raise _strange(value)
    return value


def watts(milliwatts: Any) -> float:
    return whole(milliwatts) / 1000


def sequence(value: Any, length: int | None = None) -> Sequence[Any]:
    """A list or tuple, of this `length` if one is given."""
    if not isinstance(value, (list, tuple)) or len(value) != (len(value) if length is None else length):
        raise _strange(value)
    return value


def mask(words: Any) -> frozenset[int]:
    """The CPUs of a bit mask; an empty one is no answer."""
    cpus = cpu_list.of_mask([whole(word) for word in sequence(words)])
    if not cpus:
        raise _strange(words)
    return cpus


def one_of(names: Sequence[str]) -> Callable[[Any], str]:
    """A reader of an enumeration of NVML's."""

    def name(value: Any) -> str:
        number = whole(value)
        if number >= len(names):
            raise _strange(value)
        return names[number]

    return name


def dotted(pair: Any) -> str:
    """(9, 0) as "9.0"."""
    major, minor = pair
    return f"{whole(major)}.{whole(minor)}"


def _strange(value: Any) -> Unreadable:
    return Unreadable(f"NVML answered {str(value)[:60]!r}")
