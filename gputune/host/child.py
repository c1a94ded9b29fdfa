"""Child processes that answer one question each, and are killed with all they started, also by this one's end."""

import errno
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gputune.host.keeper import NOT_STARTED
from gputune.host.kept import Kept
from gputune.host.starting import is_readable, pipe
from gputune.resources.unreadable import UNANSWERED, Cause, Unreadable

HOPELESS_SECONDS = 5.0
"""How long to go on waiting for the rest of an answer once there is no hope for it."""
PATIENCE_SECONDS = 2.0
"""How long to wait for the end of a child that was killed, which a driver may keep in the kernel."""
LOOK_SECONDS = 0.2
"""How often to look whether there is still hope for an answer."""
MOST_BYTES = 1 << 20
"""The longest answer, a hundred times as long as one about a node of eight GPUs. Whatever answers more is no Python."""
SCARCE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors of a machine that can start no process now, whatever the program."""


def ask(
    words: Sequence[str],
    environ: Mapping[str, str],
    deadline_seconds: float,
    is_hopeless: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Run a command, and return the JSON object that it writes to the file descriptor passed as its last argument.

    It may write several, a line each, which are put together. One with the key `next` names what it asks for after
    that; if it then dies or is silent until the deadline, what it had answered is returned, with the reason in `gaps`
    under that name. `is_hopeless` is called again and again while it is waited for, and may take its time; once it has
    returned true, a child that has answered in part has HOPELESS_SECONDS more. Raises `Unreadable` if it cannot be
    started or has answered nothing.
    """
    reader, writer = pipe()
    child = None
    answers = _Answers()
    try:
        try:
            child = Kept([*words, str(writer)], environ, handed=[writer])
        except OSError as error:
            raise _not_started(words[0], error) from None
        finally:
            os.close(writer)
        try:
            _drain(reader, time.monotonic() + deadline_seconds, answers, child, is_hopeless)
        except ValueError:
            raise Unreadable(f"{words[0]} answered more than {MOST_BYTES} bytes", "exited") from None
        except TimeoutError as late:
            why = str(late) or f"gave no answer within {deadline_seconds:g} s"
            raise Unreadable(f"{words[0]} {why}", "no_answer") from None
        return _answer(words[0], answers, child)
    except Unreadable as fault:
        return answers.without_the_rest(fault)
    finally:
        os.close(reader)
        if child:
            child.end(PATIENCE_SECONDS)


class _Answers:
    """What a child has written so far."""

    def __init__(self) -> None:
        self.text = b""

    def add(self, chunk: bytes) -> None:
        """Raises ValueError beyond MOST_BYTES."""
        self.text += chunk
        if len(self.text) > MOST_BYTES:
            raise ValueError

    def parts(self) -> list[dict[str, Any]]:
        """The JSON objects in it. Raises ValueError, TypeError or RecursionError where a line is none."""
        parts = [json.loads(line) for line in self.text.splitlines() if line.strip()]
        if not all(isinstance(part, dict) and isinstance(part.get("gaps", {}), dict) for part in parts):
            raise TypeError
        return parts

    def without_the_rest(self, fault: Unreadable) -> dict[str, Any]:
        """What was answered before a fault, which becomes the gap of what was asked for next. Raises it if that is
        nothing.
        """
        self.text = self.text[: self.text.rfind(b"\n") + 1]
        with suppress(ValueError, RecursionError, TypeError):
            if parts := self.parts():
                whole = _together(parts)
                gap = {"type": UNANSWERED, "name": fault.cause, "message": str(fault)}
                if awaited := whole.pop("next", None):
                    return {**whole, "gaps": {**whole.get("gaps", {}), awaited: gap}}
        raise fault


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        whole.pop("next", None)
        gaps = {**whole.get("gaps", {}), **part.get("gaps", {})}
        whole |= part
        if gaps:
            whole["gaps"] = gaps
    return whole


def _drain(reader: int, deadline: float, answers: _Answers, child: Kept, is_hopeless: Callable[[], bool]) -> None:
    """Take what a child writes until it has ended. Raises TimeoutError at the deadline, with the reason if it is not
    that the time is over.
    """
    hopeless_at: float | None = None
    while True:
        now = time.monotonic()
        if hopeless_at is not None and b"\n" in answers.text and now >= hopeless_at + HOPELESS_SECONDS:
            raise TimeoutError("waits for the driver, in which NVML hangs")
        if now >= deadline:
            raise TimeoutError
        if is_readable(reader, min(deadline - now, LOOK_SECONDS)):
            chunk = os.read(reader, 65536)
            if not chunk:
                return
            answers.add(chunk)
        elif child.ended and not is_readable(reader, 0):  # its keeper was killed
            return
        elif hopeless_at is None and is_hopeless():
            hopeless_at = time.monotonic()


def _answer(python: str, answers: _Answers, child: Kept) -> dict[str, Any]:
    try:
        parts = answers.parts()
        if not parts or "next" in parts[-1]:
            raise ValueError
    except TypeError:
        raise Unreadable(f"{python} answered something else", "exited") from None
    except (ValueError, RecursionError):
        code = child.code(2)
        cause: Cause = "killed" if code is not None and code < 0 else "exited"
        where = "" if _has_working_folder() else ", in a working folder that was deleted"
        raise Unreadable(f"{python} ended without an answer (exit code {code}{where})", cause) from None
    if isinstance(number := parts[0].get(NOT_STARTED), int) and 0 < number < 1000:
        raise _not_started(python, OSError(number, os.strerror(number)))
    return _together(parts)


def _not_started(python: str, error: OSError) -> Unreadable:
    return Unreadable(f"{python}: {error.strerror}", None if error.errno in SCARCE else "exited")


def _has_working_folder() -> bool:
    """Some libraries end their process where there is none, such as torch's oneMKL."""
    try:
        return bool(Path.cwd())
    except OSError:
        return False
