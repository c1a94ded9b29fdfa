"""The messages between gputune and the bench process: one line of JSON each, which names its type."""

import json
from dataclasses import asdict, dataclass
from typing import Any, get_args

from gputune.bench_process.context import Work
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.resources.unreadable import Cause
from gputune.strict_types import convert


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The first message to a bench process: the device to measure on, by torch's name, and the machine."""

    device: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class Ready:
    """The answer to `Start`: torch is imported and the device works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest(Work):
    """Run one bench, given by the dotted name of its module."""

    bench: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The present activity of the bench, for the progress display."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """The end of a request whose bench, or of a start whose device, raised an exception."""

    text: str
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The regular end of a request."""


Answer = Ready | Activity | Measurement | Gap | Raised | Done
Message = Start | BenchRequest | Answer

_TYPES: dict[str, Any] = {kind.__name__: kind for kind in get_args(Message)}


def encode(message: Message) -> bytes:
    """Return the message as one line, including the newline."""
    return json.dumps({"type": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode(line: bytes | str) -> Any:
    """Return the message in one line. Raises ValueError where it is not a message, or its fields have other types."""
    data = json.loads(line)
    kind = _TYPES.get(str(data.pop("type", None))) if isinstance(data, dict) else None
    if kind is None:
        raise ValueError("it is not a message of gputune")
    return convert(kind, data)
