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
    level, count = [[data]], 0
    for _ in range(DEEPEST + 1):
        deeper: list[Any] = []
        for collection in level:
            count += _check_collection(collection, deeper)
        check_count(count)
        if not deeper:
            return
        level = deeper
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


def _check_collection(collection: Any, deeper: list[Any]) -> int:
    """Check one collection's own entries, add the collections in it to `deeper`, and return how many values it has."""
    check_size(len(collection))
    if type(collection) is dict:
        for key in collection:
            check_text(key)
            check_key(key)
        values, count = collection.values(), 2 * len(collection)
    else:
        values, count = collection, len(collection)
    for value in values:
        if type(value) in (dict, list, tuple):
            deeper.append(value)
        else:
            _check_scalar(value)
    return count


def _check_scalar(value: Any) -> None:
    if type(value) is str:
        check_text(value)
    elif type(value) is float:
        if not math.isfinite(value):
            raise Malformed(f"{value} is not a finite number")
    elif type(value) is int and abs(value) >= 10**MOST_DIGITS:
        raise Malformed(f"a whole number of more than {MOST_DIGITS} digits")
