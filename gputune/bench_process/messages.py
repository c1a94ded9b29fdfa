"""The messages between gputune and the bench process, one line of JSON each, which names its type; and how it fails."""

import signal
from dataclasses import dataclass
from typing import Any, Literal

from gputune.bench_process import Work
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.resources import messages
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


def decode(line: bytes | str) -> Any:
    """Return the message in one line. Raises ValueError where it is not a message, or its fields have other types."""
    return messages.decode(line, Message, convert)


How = Literal["signal", "exit code", "deadline", "exception", "not started", "stopped"]

_SENTENCES: dict[How, str] = {
    "signal": "the bench process was killed by {number}",
    "exit code": "the bench process ended with exit code {number}",
    "deadline": "no end after {number} s; the bench process was stopped",
    "exception": "{detail}",
    "not started": "no bench process could be started: {detail}",
    "stopped": "the bench process was stopped",
}


@dataclass(eq=False, kw_only=True)
class BenchFailed(Exception):
    """A bench gave no more answers. Code asks the fields; `str()` is the sentence that a Gap shows."""

    how: How
    number: int = 0
    """The signal, the exit code, or the seconds of the deadline."""
    detail: str = ""
    """The exception, or the last line that the process left on stderr."""
    raised_cause: Cause | None = None

    @property
    def cause(self) -> Cause | None:
        return "killed" if self.how == "signal" and self.number == signal.SIGKILL else self.raised_cause

    def __str__(self) -> str:
        number = signal.Signals(self.number).name if self.how == "signal" else self.number
        sentence = _SENTENCES[self.how].format(number=number, detail=self.detail)
        last_line = self.detail and self.how in ("signal", "exit code")
        return f"{sentence}: {self.detail}" if last_line else sentence
