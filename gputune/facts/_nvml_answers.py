"""Converters of NVML's answers to the types that they should have; each raises `Unreadable` for any other answer."""

from collections.abc import Callable, Sequence
from typing import Any

from gputune.facts import cpu_list
from gputune.host import Unreadable
from gputune.resources.unreadable import Cause

MOST_GPUS = 256
"""More than any machine has; a driver that says so is not believed."""
_MOST_ITEMS = 4096
_LONGEST_TEXT = 200
_LARGEST = 2**64 - 1


def whole(value: Any) -> int:
    """A whole number of at least zero: everything that NVML counts is unsigned, in 64 bits at the most."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise _strange(value)
    return value


def positive(value: Any) -> int:
    """A whole number above zero, such as a link's width, for which NVML answers 0 if it does not know."""
    if whole(value) == 0:
        raise _strange(value)
    return whole(value)


def gpu_count(value: Any) -> int:
    if whole(value) > MOST_GPUS:
        raise Unreadable(f"NVML says that there are {value} GPUs", "implausible")
    return whole(value)


def flag(value: Any) -> bool:
    if whole(value) > 1:
        raise _strange(value)
    return bool(value)


def text(value: Any) -> str:
    """A printable text of 1 to 200 characters."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT or not value.isprintable():
        raise _strange(value)
    return value


def watts(milliwatts: Any) -> float:
    return whole(milliwatts) / 1000


def sequence(value: Any, length: int | None = None) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_ITEMS or length not in (None, len(value)):
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
    major, minor = sequence(pair, 2)
    return f"{whole(major)}.{whole(minor)}"


def _strange(value: Any) -> Unreadable:
    try:
        shown = str(value)[:60]
    except ValueError:  # Python writes no whole number of more than 4300 digits
        shown = "a number without end"
    return Unreadable(f"NVML answered {shown!r}")


_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""By the type that NVML gives of a value (nvml.h, nvmlValueType_t), the member of the union that has it."""
_ERRORS: dict[int, tuple[str, Cause]] = {
    2: ("Invalid Argument", "no_such_call"),  # of a field that the driver does not know
    3: ("Not Supported", "not_supported"),
    13: ("Function Not Found", "no_such_call"),
    15: ("GPU is lost", "gpu_lost"),
    16: ("GPU requires a reset", "needs_reset"),
    999: ("Unknown Error", "unknown_error"),
}
"""By nvmlReturn_t."""


def field_value(answer: Any) -> Any:
    """The value of the one field that was asked for. Raises Unreadable for the error that NVML answers in its place."""
    [field] = sequence(answer, 1)
    if number := whole(field["nvmlReturn"]):
        reason, cause = _ERRORS.get(number, (f"error {number}", None))
        raise Unreadable(f"NVML: {reason}", cause)
    return field["value"][_MEMBERS[whole(field["valueType"])]]
