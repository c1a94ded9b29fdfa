"""The parent side of the bench process: a child that runs benches, one after the other, and may die of any of them.

Plain pipes and a keeper instead of a pool: a pool does not notice a grandchild that holds its pipe, shares
stdout with whatever prints, and leaves orphans.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from typing import Self

import gputune_start
from gputune.bench_process.messages import Activity, Answer, BenchFailed, BenchRequest, Done, Raised, Start, decode
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.host.child import JsonChild
from gputune.host.kept import lifted, new_folder
from gputune.measurement import Measurement
from gputune.resources.messages import encode

READY_SECONDS = 180
"""For importing torch from a cold disk and creating a CUDA context."""
FAILED_STARTS = 2
"""After so many processes in a row that never became ready, no more are started."""

_WARNING = re.compile(r"^\S+:\d+: \w*Warning: .*\n(?:  .*\n?)?", re.MULTILINE)
"""A warning as Python's `warnings` prints it, with its line of source: no process ends because of one."""


class BenchProcess(JsonChild[Answer]):
    """One child process on one device. Use as a context manager: on exit nothing of it is left.
    It imports torch, and `imports`, from the moment it is created, while the parent reads the machine.
    """

    def __init__(self, imports: Sequence[str] = ()) -> None:
        self._stderr = lifted(os.memfd_create("gputune-bench-process"))
        words = gputune_start.words("gputune.bench_process.serve", ",".join(imports), str(os.getpid()))
        environ = {**os.environ, "GPUTUNE_DISABLE": "1"}
        try:
            super().__init__(words, environ, output=self._stderr, folder=new_folder())
        except OSError:
            os.close(self._stderr)
            raise
        self._open.append(self._stderr)

    def decode(self, line: bytes) -> Answer:
        answer: Answer = decode(line)
        return answer

    def ready(self, start: Start) -> None:
        """Wait until torch is imported and the device answers. Raises BenchFailed."""
        self._tell(start)
        self._answer(READY_SECONDS, READY_SECONDS)

    def run(self, request: BenchRequest, deadline_seconds: float) -> Iterator[Measurement | Gap | Activity]:
        """Run one bench; yield its answers. Raises BenchFailed; the process is of use after that if it lives."""
        self._tell(request)
        deadline = time.monotonic() + deadline_seconds
        while not isinstance(answer := self._answer(deadline - time.monotonic(), deadline_seconds), Done):
            if isinstance(answer, Measurement | Gap | Activity):
                yield answer

    def kill(self) -> None:
        """End it, from any thread: who waits for its answers gets BenchFailed."""
        self.kept.end()

    def _tell(self, message: Start | BenchRequest) -> None:
        try:
            self.send(encode(message))
        except ConnectionError:
            raise self._death() from None

    def _answer(self, seconds: float, deadline: float) -> Answer:
        """The next answer, also one that the child gave before it died. Raises BenchFailed."""
        try:
            answer = self.receive(seconds)
        except TimeoutError:
            self.kill()
            raise BenchFailed(how="deadline", number=round(deadline)) from None
        except ConnectionError:
            raise self._death() from None
        except (ValueError, OverflowError) as error:
            detail = f"the bench process gave an invalid answer: {error}"
            raise BenchFailed(how="exception", detail=detail) from None
        if isinstance(answer, Raised):
            raise BenchFailed(how="exception", detail=answer.text, raised_cause=answer.cause)
        return answer

    def _death(self) -> BenchFailed:
        """Wait for the child's end; return how it ended, with the last line that it left on stderr."""
        self.kept.code(1)  # its pipe may close a moment before it ends by itself
        self.kill()
        code = self.kept.code()
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


class RestartingProcess:
    """One bench process at a time. The first starts on entry; `measure_on` then names the device."""

    def __init__(self, imports: Sequence[str] = ()) -> None:
        self._imports = imports
        self._process: BenchProcess | None = None
        self._start: Start
        self._ready = False
        self._failed_starts: list[str] = []
        self._stopped = False

    def __enter__(self) -> Self:
        self._process = BenchProcess(self._imports)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.close()

    def measure_on(self, device: str, facts: Facts) -> None:
        self._start = Start(device=device, facts=facts)

    def run(
        self, request: BenchRequest, deadline_seconds: float | None = None
    ) -> Iterator[Measurement | Gap | Activity]:
        """Yield the answers of one bench; its deadline follows from its `seconds` unless given. Raises BenchFailed."""
        process = self.start()
        try:
            # A bench keeps to its seconds by itself; twice that, and the start of its processes, is a hang.
            yield from process.run(request, deadline_seconds or 2 * request.seconds + 30)
        except BenchFailed:
            # Also after an ordinary exception: CUDA errors stick to a process, and memory may be gone.
            process.kill()
            raise

    def kill(self) -> None:
        if self._process:
            self._process.kill()

    def stop(self) -> None:
        """End the process, from any thread, and start no other."""
        self._stopped = True
        self.kill()

    def start(self) -> BenchProcess:
        """Return the process once it is ready, so that what follows takes only its own time. Raises BenchFailed."""
        if self._stopped:
            raise BenchFailed(how="stopped")
        if self._process and self._ready and not self._process.has_ended:
            return self._process
        if len(self._failed_starts) >= FAILED_STARTS:
            raise BenchFailed(how="not started", detail=self._failed_starts[-1])
        if self._process is None or self._ready or self._failed_starts:
            if self._process:
                self._process.close()
            self._process = BenchProcess(self._imports)
            if self._stopped:  # by another thread, meanwhile
                self._process.kill()
        self._ready = False
        try:
            self._process.ready(self._start)
        except BenchFailed as failed:
            self._failed_starts.append(str(failed))
            self._process.kill()
            raise
        self._failed_starts, self._ready = [], True
        return self._process
