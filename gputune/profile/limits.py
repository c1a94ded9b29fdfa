"""How large a profile may be. Reader and writer share these limits, so that whatever is written can be read again.

The largest profile that a probe makes (the most `--shapes`, full rows of the longest samples) takes two thirds of the
bytes. The limits keep a hostile file from costing its reader more than a second or 200 MiB.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

MOST_BYTES = 1 << 20
"""Also the most that a Kubernetes ConfigMap holds."""
DEEPEST = 16
"""Collections inside one another."""
MOST_ENTRIES = 2000
"""Entries of one list or mapping."""
MOST_VALUES = 1 << 17
"""Keys and values of a whole file: as many as 1 MiB of a profile's usual rows holds."""
LONGEST = 4096
"""Characters of one text."""
MOST_DIGITS = 19
"""Digits of a whole number."""
MOST_PROGRAMS = 64
MOST_PROGRAM_BYTES = 32 << 10
"""One program as canonical JSON."""


class Malformed(ValueError):
    """A text, or data, that cannot be a profile; the message says where, as far as that is known."""


def check(data: Any) -> None:
    """Raise Malformed for plain data (mappings, lists, scalars) that exceeds a limit. It may be nested to any depth."""
    level: list[Any] = [[data]]
    count = 0
    for _ in range(DEEPEST + 1):
        values = [value for collection in level for value in _checked_values(collection)]
        count += sum(len(collection) * (2 if type(collection) is dict else 1) for collection in level)
        check_count(count)
        level = [value for value in values if type(value) in (dict, list, tuple)]
        if not level:
            return
    raise Malformed(f"nested more than {DEEPEST} deep")


def check_count(count: int) -> None:
    if count > MOST_VALUES:
        raise Malformed(f"more than {MOST_VALUES} keys and values")


def check_size(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise Malformed(f"more than {MOST_ENTRIES} entries in one place")


def check_text(text: str) -> None:
    if len(text) > LONGEST:
        raise Malformed(f"a text of more than {LONGEST} characters")


def check_key(key: str) -> None:
    if key == "<<":
        raise Malformed("merges are not allowed")


def check_programs(programs: Sequence[Any]) -> None:
    """Raise Malformed for the plain data of more or larger programs than a profile holds."""
    if len(programs) > MOST_PROGRAMS:
        raise Malformed(f"programs: at most {MOST_PROGRAMS} expected, {len(programs)} given")
    for number, program in enumerate(programs):
        if (size := program_bytes(program)) > MOST_PROGRAM_BYTES:
            most = MOST_PROGRAM_BYTES // 1024
            raise Malformed(f"programs.{number}: takes {-(-size // 1024)} KiB, and {most} KiB is the most")


def program_bytes(program: Any) -> int:
    return len(json.dumps(program, sort_keys=True, separators=(",", ":")))


def _checked_values(collection: Any) -> Any:
    """The values of one collection, whose own entries are within the limits."""
    check_size(len(collection))
    keys, values = (collection, collection.values()) if type(collection) is dict else ((), collection)
    for key in keys:
        check_text(key)
        check_key(key)
    for value in values:
        _check_scalar(value)
    return values


def _check_scalar(value: Any) -> None:
    if type(value) is str:
        check_text(value)
    elif type(value) is float:
        if not math.isfinite(value):
            raise Malformed(f"{value} is not a finite number")
    elif type(value) is int and abs(value) >= 10**MOST_DIGITS:
        raise Malformed(f"a whole number of more than {MOST_DIGITS} digits")
