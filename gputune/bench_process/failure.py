"""How a bench, or the process that it runs in, failed."""

import signal
from dataclasses import dataclass
from typing import Literal

from gputune.resources.unreadable import Cause

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
    """The cause that the exception itself names."""

    @property
    def cause(self) -> Cause | None:
        return "killed" if self.how == "signal" and self.number == signal.SIGKILL else self.raised_cause

    def __str__(self) -> str:
        number = signal.Signals(self.number).name if self.how == "signal" else self.number
        sentence = _SENTENCES[self.how].format(number=number, detail=self.detail)
        last_line = self.detail and self.how in ("signal", "exit code")
        return f"{sentence}: {self.detail}" if last_line else sentence
