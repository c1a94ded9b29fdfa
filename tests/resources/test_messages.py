"""A message's line names its type, and only the types that are asked for are taken."""

from dataclasses import dataclass
from typing import Any

import pytest

from gputune.resources.messages import decode, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    text: str


@dataclass(frozen=True, slots=True)
class Last: ...


@dataclass(frozen=True, slots=True)
class Other: ...


def received(line: bytes | str) -> Any:
    return decode(line, Asked | Last, lambda kind, fields: kind(**fields))


@pytest.mark.parametrize("text", ["", "one\ntwo", '"', "\ud800", "é"])
def test_a_message_is_one_line_and_arrives(text: str) -> None:
    line = encode(Asked(text=text))
    assert line.count(b"\n") == 1
    assert received(line) == Asked(text=text)


@pytest.mark.parametrize("line", [encode(Other()), b"", b"[]", b"{}", b'{"text": "no type"}'])
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        received(line)
