"""The parent side of the bench process: a child that runs benches, one after the other, and may die of any of them.

Plain pipes and a keeper instead of a pool: a pool does not notice a grandchild that holds its pipe, shares
stdout with whatever prints, and leaves orphans.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import gputune_start
from gputune.bench_process.failure import BenchFailed
from gputune.bench_process.messages import Activity, Answer, BenchRequest, Done, Message, Raised, Start, decode, encode
from gputune.facts.gap import Gap
from gputune.host.kept import Kept, new_folder
from gputune.host.starting import lifted, pipe
from gputune.measurement import Measurement

READY_SECONDS = 180
"""For importing torch from a cold disk and creating a CUDA context."""

_WARNING = re.compile(r"^\S+:\d+: \w*Warning: .*\n(?:  .*\n?)?", re.MULTILINE)
"""A warning as Python's `warnings` prints it, with its line of source: no process ends because of one."""


class BenchProcess:
    """One child process on one device. Use as a context manager: on exit nothing of it is left.

    It imports torch, and `imports`, from the moment it is created, while the parent reads the machine.
    """

    def __init__(self, imports: Sequence[str] = ()) -> None:
        requests_reader, self._requests = pipe()
        self._answers, answers_writer = pipe()
        self._stderr = lifted(os.memfd_create("gputune-bench-process"))
        self._buffer = b""
        arguments = map(str, (requests_reader, answers_writer, os.getpid()))
        try:
            self._child = Kept(
                gputune_start.words("gputune.bench_process.serve", *arguments, *imports),
                {**os.environ, "GPUTUNE_DISABLE": "1"},
                handed=[requests_reader, answers_writer],
                output=self._stderr,
                folder=new_folder(),
            )
        except OSError:
            for descriptor in (self._requests, self._answers, self._stderr):
                os.close(descriptor)
            raise
        finally:
            os.close(requests_reader)
            os.close(answers_writer)
        self._watch = _pidfd(self._child.pid)

    def __enter__(self) -> BenchProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The pid of the child's keeper, which leads the process group of everything it starts."""
        return self._child.pid

    def ready(self, start: Start) -> None:
        """Wait until torch is imported and the device answers. Raises BenchFailed."""
        self._send(start)
        next(self._listen(READY_SECONDS))

    def run(self, request: BenchRequest, deadline_seconds: float) -> Iterator[Measurement | Gap | Activity]:
        """Run one bench; yield its answers. Raises BenchFailed, after which the process is of use only if `alive`."""
        self._send(request)
        for answer in self._listen(deadline_seconds):
            if isinstance(answer, Done):
                return
            if isinstance(answer, Measurement | Gap | Activity):
                yield answer

    @property
    def alive(self) -> bool:
        return not self._child.ended

    def close(self) -> None:
        self._child.end()
        for descriptor in (self._requests, self._answers, self._stderr, self._watch):
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)

    def kill(self) -> None:
        self._child.end()

    def _send(self, message: Message) -> None:
        line = encode(message)
        try:
            while line:
                line = line[os.write(self._requests, line) :]
        except BrokenPipeError:
            raise self._death() from None

    def _listen(self, seconds: float) -> Iterator[Answer]:
        """Yield answers until the deadline, also what the child answered before it died. Raises BenchFailed."""
        deadline = time.monotonic() + seconds
        while True:
            line, complete, rest = self._buffer.partition(b"\n")
            if complete:
                self._buffer = rest
                yield _decoded(line)
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                self.kill()
                raise BenchFailed(how="deadline", number=round(seconds))
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
        raise self._death()

    def _death(self) -> BenchFailed:
        """Wait for the child's end; return how it ended, with the last line that it left on stderr."""
        self._child.code(1)  # its pipe may close a moment before it ends by itself
        self._child.end()
        code = self._child.code()
        if code is None:  # not even SIGKILL ended it
            return BenchFailed(how="stopped")
        return BenchFailed(how="signal" if code < 0 else "exit code", number=abs(code), detail=self._last_line())

    def _last_line(self) -> str:
        try:
            size = os.fstat(self._stderr).st_size
            text = os.pread(self._stderr, 4096, max(0, size - 4096)).decode(errors="replace")
        except OSError:
            return ""
        lines = (line.strip() for line in reversed(_WARNING.sub("", text).split("\n")))
        return next((line[:300] for line in lines if line), "")


def _pidfd(pid: int) -> int | None:
    """A descriptor that turns readable when the process ends; None on kernels without (then it is polled)."""
    try:
        return lifted(os.pidfd_open(pid))
    except OSError:
        return None


def _decoded(line: bytes) -> Answer:
    """Raises BenchFailed also where the answer is that the bench raised an exception."""
    try:
        answer: Answer = decode(line)
    except ValueError as error:
        raise BenchFailed(how="exception", detail=f"the bench process gave an invalid answer: {error}") from None
    if isinstance(answer, Raised):
        raise BenchFailed(how="exception", detail=answer.text, raised_cause=answer.cause)
    return answer
