"""Talking to another process: lines of JSON in both directions, each within a deadline."""

import errno
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Generic, Self, TypeVar

from gputune.host.keeper import NOT_STARTED
from gputune.host.kept import PATIENCE_SECONDS, Kept, pipe, readable
from gputune.resources.unreadable import UNANSWERED, Cause, Unreadable

Answer = TypeVar("Answer")

LOOK_SECONDS = 0.2
"""How often to look whether there is still somebody, or still hope, while an answer is waited for."""
HOPELESS_SECONDS = 5.0
"""How long to go on waiting for the rest of an answer once there is no hope for it."""
ASKED_SECONDS = 2.0
"""How long to wait for the end of a child that was asked and then killed, which a driver may keep in the kernel."""
MOST_BYTES = 1 << 20
"""The longest answer to `ask`, a hundred times as long as one about a node of eight GPUs."""
SCARCE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors of a machine that can start no process now, whatever the program."""


class JsonLines(Generic[Answer]):
    longest_line = 1 << 24
    """The most bytes of an answer, several times as many as the largest profile has."""

    def __init__(self, answers: int, requests: int) -> None:
        self._answers, self._requests = answers, requests
        self._text = b""
        self.heard_bytes = 0

    @property
    def has_ended(self) -> bool:
        """Whether the other process is gone, which its end of the connection may not show."""
        return False

    def decode(self, line: bytes) -> Answer:
        """The answer in a line. Raises ValueError where it is none."""
        answer: Answer = json.loads(line)
        return answer

    def send(self, line: bytes) -> None:
        """Raises ConnectionError where nobody reads it any more."""
        while line:
            line = line[os.write(self._requests, line) :]

    def receive(self, seconds: float) -> Answer:
        """The next answer. Raises TimeoutError; ConnectionError at the end; ValueError; OverflowError if too long."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._text:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if not readable([self._answers], min(left, LOOK_SECONDS)):
                if self.has_ended and not readable([self._answers], 0):
                    raise ConnectionResetError("it has ended")
                continue
            try:
                self.take()
            except ConnectionResetError:
                if not self._text:
                    raise
                with suppress(ValueError):  # what it wrote last, which may be cut off
                    return self._next()
                raise
        return self._next()

    def take(self) -> None:
        """Read what is there, or wait for something. Raises ConnectionError where the other side has closed."""
        chunk = os.read(self._answers, 1 << 16)
        if not chunk:
            raise ConnectionResetError("it has closed the connection")
        self.heard_bytes += len(chunk)
        self._text += chunk
        if len(self._text) > self.longest_line:
            raise OverflowError(f"more than {self.longest_line} bytes without an end")

    def arrived(self) -> Iterator[Answer]:
        while b"\n" in self._text:
            yield self._next()

    def _next(self) -> Answer:
        line, _, self._text = self._text.partition(b"\n")
        try:
            return self.decode(line)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


class JsonChild(JsonLines[Answer]):
    """A command that answers, and ends with this process. Its last arguments are two descriptors: requests, answers."""

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        *,
        is_sent: bool = True,
        output: IO[bytes] | int = subprocess.DEVNULL,
        folder: str | None = "",
    ) -> None:
        """The last two are those of `Kept`. Raises OSError, and ValueError for words that none can have."""
        ends: list[int] = []
        try:
            ends += pipe()
            if is_sent:
                ends += pipe()
            theirs = [*ends[2:3], ends[1]]
            words = [*words, *map(str, theirs)]
            self.kept = Kept(words, environ, handed=theirs, output=output, folder=folder)
        except BaseException:
            for end in ends:
                os.close(end)
            raise
        for end in theirs:
            os.close(end)
        self._open = [ends[0], *ends[3:]]
        super().__init__(ends[0], ends[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_ended(self) -> bool:
        return self.kept.has_ended

    def close(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """End it; only from the thread that hears it."""
        self.kept.end(patience_seconds)
        while self._open:
            os.close(self._open.pop())


def ask(
    words: Sequence[str],
    environ: Mapping[str, str],
    deadline_seconds: float,
    is_hopeless: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Run a command, and return the JSON object that it writes to the file descriptor passed as its last argument.
    It may write several lines, which are merged. `next` in a line names what it asks for after that: if it dies then,
    what was answered is returned, with the reason in `gaps`. Once `is_hopeless`, which is called repeatedly, is true, a
    child has HOPELESS_SECONDS more. Raises `Unreadable` if it answered nothing.
    """
    whole: dict[str, Any] = {}
    gaps: dict[str, Any] = {}
    awaited = None
    try:
        child = JsonChild[Any](words, environ, is_sent=False)
    except OSError as error:
        raise _not_started(words[0], error) from None
    try:
        for part in _parts(child, words[0], deadline_seconds, is_hopeless):
            awaited = part.get("next")
            gaps |= part.get("gaps", {})
            whole |= part
    except Unreadable as fault:
        if not isinstance(awaited, str):
            raise
        gaps[awaited] = {"type": UNANSWERED, "name": fault.cause, "message": str(fault)}
    finally:
        child.close(ASKED_SECONDS)
    whole.pop("next", None)
    return {**whole, "gaps": gaps} if gaps else whole


def _parts(
    child: JsonChild[Any], name: str, seconds: float, is_hopeless: Callable[[], bool]
) -> Iterator[dict[str, Any]]:
    """The objects that the command `name` writes until its end. Raises Unreadable."""
    part: dict[str, Any] | None = None
    try:
        for part in _until(child, time.monotonic() + seconds, is_hopeless):
            if not isinstance(part, dict) or not isinstance(part.get("gaps", {}), dict):
                raise Unreadable(f"{name} answered something else", "exited")
            if isinstance(number := part.get(NOT_STARTED), int) and 0 < number < 1000:
                raise _not_started(name, OSError(number, os.strerror(number)))
            yield part
    except OverflowError:
        raise Unreadable(f"{name} answered more than {MOST_BYTES} bytes", "exited") from None
    except TimeoutError as late:
        raise Unreadable(f"{name} {str(late) or f'gave no answer within {seconds:g} s'}", "no_answer") from None
    except (ConnectionError, ValueError):
        if part is None or "next" in part:
            raise _ended(name, child.kept.code(2)) from None


def _until(child: JsonChild[Any], deadline: float, is_hopeless: Callable[[], bool]) -> Iterator[Any]:
    """The values that a child process sends, until the deadline. Raises the exceptions of `receive`, and OverflowError
    once it has sent more than MOST_BYTES.
    """
    hopeless_at = float("inf")
    while child.heard_bytes <= MOST_BYTES:
        now = time.monotonic()
        if child.heard_bytes and now >= hopeless_at + HOPELESS_SECONDS:
            raise TimeoutError("waits for the driver, in which NVML hangs")
        if now >= deadline:
            raise TimeoutError
        try:
            yield child.receive(min(deadline - now, LOOK_SECONDS))
        except TimeoutError:
            if hopeless_at == float("inf") and is_hopeless():
                hopeless_at = time.monotonic()
    raise OverflowError


def _ended(name: str, code: int | None) -> Unreadable:
    if code is None:
        return Unreadable(f"{name} answered something else", "exited")
    cause: Cause = "killed" if code < 0 else "exited"
    where = "" if _has_working_folder() else ", in a working folder that was deleted"
    return Unreadable(f"{name} ended without an answer (exit code {code}{where})", cause)


def _not_started(python: str, error: OSError) -> Unreadable:
    return Unreadable(f"{python}: {error.strerror}", None if error.errno in SCARCE else "exited")


def _has_working_folder() -> bool:
    """Some libraries end their process where there is none, such as torch's oneMKL."""
    try:
        return bool(Path.cwd())
    except OSError:
        return False
