"""The parent side of a worker: a child process that runs benches, one after the other, and may die of any of them.

Plain pipes and a process group instead of a pool: a pool does not notice a grandchild that holds its pipe, shares stdout
with whatever prints, and leaves orphans.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from gputune.host import end
from gputune.measurement import Measurement

READY_SECONDS = 180.0
"""For importing torch from a cold disk and creating a CUDA context."""


_WARNING = re.compile(r"^\S+:\d+: \w*Warning: .*\n(?:  .*\n?)?", re.MULTILINE)
"""As Python's `warnings` prints one, with its line of source: nothing dies of it."""


class BenchFailed(Exception):
    """The worker ended, hung or failed; the text is the reason that a Gap will show."""


class BenchProcess:
    """One child process on one device. Use as a context manager: on exit nothing of it is left.

    It imports torch as soon as it is made, so that what is read meanwhile costs no time.
    """

    def __init__(self) -> None:
        requests_reader, self._requests = os.pipe()
        self._answers, answers_writer = os.pipe()
        self._stderr = os.memfd_create("gputune-worker")
        self._buffer = b""
        self._child = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "gputune.bench_process.serve",
                str(requests_reader),
                str(answers_writer),
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            pass_fds=[requests_reader, answers_writer],
            start_new_session=True,
            env={**os.environ, "GPUTUNE_DISABLE": "1"},
        )
        os.close(requests_reader)
        os.close(answers_writer)
        self._watch = _pidfd(self._child.pid)

    def __enter__(self) -> BenchProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Its process, which leads the group of all that it starts."""
        return self._child.pid

    def ready(self, device: str, facts: Mapping[str, Any], seconds: float = READY_SECONDS) -> None:
        """Wait until torch is imported and `device` answers. Raises BenchFailed."""
        self._send({"device": device, "facts": facts})
        for answer in self._listen(seconds):
            if "ready" in answer:
                return
            raise BenchFailed(str(answer.get("failed", answer)))

    def run(self, request: Mapping[str, Any], deadline_seconds: float) -> Iterator[dict[str, Any]]:
        """Run one bench (`request`: its name as `bench`, and the rest of its Context); yield its answers (`measurement`,
        `gap`, `say`). Raises BenchFailed, after which the worker is of no use unless `alive`: a bench that raised an ordinary
        exception leaves it so.
        """
        self._send(request)
        for answer in self._listen(deadline_seconds):
            if "done" in answer:
                return
            if "failed" in answer:
                raise BenchFailed(answer["failed"])
            yield answer

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def close(self) -> None:
        end(self._child)
        for descriptor in (self._requests, self._answers, self._stderr, self._watch):
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)

    def kill(self) -> None:
        end(self._child)

    def _send(self, request: Mapping[str, Any]) -> None:
        text = json.dumps(request).encode() + b"\n"
        try:
            while text:
                text = text[os.write(self._requests, text) :]
        except BrokenPipeError:
            raise BenchFailed(self._epitaph()) from None

    def _listen(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Answers until the deadline. Those that the worker gave before it died are given out first."""
        deadline = time.monotonic() + seconds
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = rest
                yield _parsed(line)
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                self.kill()
                raise BenchFailed(f"no end after {seconds:.0f} s; it was stopped")
            self._fill(left)

    def _fill(self, seconds: float) -> None:
        watched = [self._answers] if self._watch is None else [self._answers, self._watch]
        readable = select.select(watched, [], [], min(seconds, 0.5))[0]
        if self._answers in readable:
            chunk = os.read(self._answers, 1 << 16)
            if chunk:
                self._buffer += chunk
                return
        elif self.alive:
            return
        raise BenchFailed(self._epitaph())

    def _epitaph(self) -> str:
        """What it died of: the signal or code, and the last line that it left on stderr."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(1)  # its pipe may close a moment before it ends by itself
        end(self._child)
        code = self._child.returncode
        how = (
            f"killed by {signal.Signals(-code).name}"
            if code is not None and code < 0
            else f"ended with exit code {code}"
        )
        with suppress(OSError):
            size = os.fstat(self._stderr).st_size
            text = os.pread(self._stderr, 4096, max(0, size - 4096)).decode(errors="replace")
            last = next((line.strip() for line in reversed(_WARNING.sub("", text).split("\n")) if line.strip()), "")
            return f"the worker was {how}" + (f": {last[:300]}" if last else "")
        return f"the worker was {how}"


def measurement_of(row: Mapping[str, Any]) -> Measurement:
    """What an answer's `measurement` holds."""
    return Measurement(**{**row, "samples": tuple(row["samples"])})


def _pidfd(pid: int) -> int | None:
    """A descriptor that turns readable when the process ends; None on kernels without (then it is polled)."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        raise BenchFailed("the worker's answer was not JSON") from None
    return answer if isinstance(answer, dict) else {}
