"""One start of the user's command: its ranks, what they are told, and what they answer.

Rank 0's answers count. All ranks get the same order at the same step, so that they stay in step.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress

from gputune.host import keeper
from gputune.host.kept import readable
from gputune.live.advice import Advice
from gputune.live.orders import (
    Answer,
    Assignment,
    CallsWithGradients,
    End,
    Hello,
    Message,
    OnlyCalls,
    Order,
    Over,
    Passed,
    Raised,
    Role,
    Trains,
)
from gputune.live.payload import Payload
from gputune.resources.messages import encode
from gputune.runtime.launch import starts_ranks
from gputune.trials.failure import How, RunFailed
from gputune.trials.rank import Rank
from gputune.trials.start import SCRATCH, TEMPORARY, Start, kill_shells, spawn
from gputune.trials.user_files import COPIES, NAMESPACE, WRITTEN, caches

LAUNCHER_SECONDS = 10.0
"""How long a launcher may take to notice that its ranks have ended."""
KEEPER_SECONDS = 15.0
STOPPED_SECONDS = 2.0
"""How long nothing is heard until it is asked whether a process was stopped, as with SIGSTOP."""
HELLO_SECONDS = 10.0
"""How long a process that has connected may take to say who it is."""


class RunningCommand:
    """A running command. Use as a context manager: on exit nothing of it is left."""

    def __init__(
        self,
        start: Start,
        role: Role,
        *,
        advice: Advice | None = None,
        shift: int | None = None,
        other_numbers: bool = False,
    ) -> None:
        self._start = start
        self._ranks: list[Rank] = []
        """The ranks that have said hello, by their numbers."""
        self._answers_only = False
        """Whether the program called its models without gradients, and has taken no step yet."""
        self._with_gradients = 0
        """How many calls with gradients the program has made, as far as it said, without a backward pass or a step."""
        self._scratch = start.folder / SCRATCH
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = start.folder / "socket"
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        self._listener.listen(128)
        assignment = Assignment(
            role=role,
            socket=str(path),
            scratch="" if start.allow_writes else str(self._scratch),
            namespace=str(start.folder / NAMESPACE) if start.above_copies else "",
            unchanged=tuple(caches(start.environ, start.command)),
            written=str(start.folder / WRITTEN),
            shift=shift,
            trains=start.trains,
            other_numbers=other_numbers,
        )
        self._begun = self._heard = time.monotonic()
        self._keeper, self._lifeline = spawn(start, Payload(advice=advice, is_tuned=True).text, assignment)

    def __enter__(self) -> RunningCommand:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            os.close(self._lifeline)
        try:
            self._keeper.wait(KEEPER_SECONDS)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
        self._listener.close()
        for rank in self._ranks:
            rank.connection.close()
        for name in (SCRATCH, TEMPORARY, COPIES):
            keeper.remove(str(self._start.folder / name))

    @property
    def hello(self) -> Hello:
        """The first message of rank 0."""
        return self._ranks[0].hello

    def first(self, answer: type[Answer]) -> Answer:
        """Wait until every rank has taken its first steps; return what rank 0 then says. Raises RunFailed."""
        deadline = self._start.until
        try:
            while not self._ranks or len(self._ranks) < self.hello.world:
                self._hear(deadline)
            if self.hello.local < self.hello.world:
                raise RunFailed(how="nodes")
            return self._answers(answer, deadline)
        except RunFailed as failure:
            if failure.how == "ended" and self._keeper.returncode == 0:
                if self._answers_only:
                    raise RunFailed(how="answers") from None
                failure.how = "gradients" if self._with_gradients else "finished"
                failure.steps = self._with_gradients
            failure.when = "before it had taken two training steps, or made ten calls without gradients"
            raise
        except TimeoutError:
            how: How = "gradients" if self._with_gradients else "never stepped"
            seconds = f"{time.monotonic() - self._begun:.0f} s"
            raise RunFailed(how=how, detail=seconds, steps=self._with_gradients) from None

    def ask(self, seconds: float, order: Order[Answer]) -> Answer:
        """Give all ranks an order, and return rank 0's answer. Raises RunFailed, also where a rank takes more than
        `seconds` from one word to the next.
        """
        for rank in self._ranks:
            try:
                rank.send(encode(order))
            except OSError:
                raise self._end_of(rank) from None
        return self._answers(order.answer(), None, seconds)

    def finish(self) -> None:
        """Have all ranks flush what they wrote and end, before anything behind their loops can run."""
        with suppress(RunFailed):
            self.ask(KEEPER_SECONDS, End())
        if not kill_shells([rank.hello.pid for rank in self._ranks], self._keeper.pid):
            with suppress(RunFailed, OSError):
                for rank in self._ranks:
                    rank.send(encode(End()))
            if starts_ranks(self._start.command):
                with suppress(subprocess.TimeoutExpired):
                    self._keeper.wait(LAUNCHER_SECONDS)
            else:
                for rank in self._ranks:
                    rank.wait_for_its_end(1.0)

    def _answers(self, kind: type[Answer], deadline: float | None, seconds: float = 0.0) -> Answer:
        """The answer of rank 0, once every rank has given one. A rank that passes a step has more time."""
        until = min(time.monotonic() + seconds, self._start.until) if deadline is None else deadline
        while not all(rank.answers for rank in self._ranks):
            try:
                passed = self._hear(until)
            except TimeoutError:
                if deadline is not None:
                    raise
                if time.monotonic() >= self._start.until:
                    raise RunFailed(how="late") from None
                raise RunFailed(how="silent", rank=self._name(self._late()), detail=f"{seconds:.0f} s") from None
            if passed and deadline is None:
                until = min(time.monotonic() + seconds, self._start.until)
        answer, *_ = [rank.answers.pop(0) for rank in self._ranks]
        if not isinstance(answer, kind):
            raise self._invalid(self._ranks[0], f"{kind.__name__} expected, {type(answer).__name__} given")
        return answer

    def _hear(self, deadline: float) -> bool:
        """Take what ranks say; whether any passed a step. Raises TimeoutError, and RunFailed where one has ended."""
        watched = [self._listener.fileno(), *(rank.connection.fileno() for rank in self._ranks)]
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        ready = readable(watched, min(left, 0.2))
        if self._listener.fileno() in ready:
            self._greet(self._listener.accept()[0])
        passed = False
        for rank in [one for one in self._ranks if one.connection.fileno() in ready]:
            passed |= self._take_all(rank, rank.hear())
        if not ready and self._keeper.poll() is not None:
            raise RunFailed(how="ended", detail=_ending(self._keeper.returncode))
        if ready or time.monotonic() - self._heard > STOPPED_SECONDS:
            self._heard = time.monotonic()
            if not ready:
                self._find_stopped()
        return passed

    def _find_stopped(self) -> None:
        """Raises RunFailed if a rank is stopped by a signal; before there is one, if anything of the command is."""
        import psutil

        with suppress(psutil.Error, ValueError):  # as for a negative number
            ranks = [psutil.Process(rank.hello.pid) for rank in self._ranks]
            for process in ranks or psutil.Process(self._keeper.pid).children(recursive=True):
                if process.status() == psutil.STATUS_STOPPED:
                    number = next((self._name(one) for one in self._ranks if one.hello.pid == process.pid), None)
                    raise RunFailed(how="stopped", rank=number, detail=f"process {process.pid} ({process.name()})")

    def _greet(self, connection: socket.socket) -> None:
        """A new rank says hello first. Another process of the same rank is not measured."""
        rank = Rank(connection)
        hello: Message | None = None
        with suppress(OSError, ValueError, OverflowError):
            hello = rank.receive(HELLO_SECONDS)
        if not isinstance(hello, Hello) or any(other.hello.rank == hello.rank for other in self._ranks):
            connection.close()
            return
        rank.hello = hello
        self._ranks = sorted([*self._ranks, rank], key=lambda one: one.hello.rank)
        self._take_all(rank, rank.arrived())

    def _take_all(self, rank: Rank, messages: Iterable[Message]) -> bool:
        """Take what a rank says. Return whether it passed a step. Raises RunFailed."""
        try:
            passed = [self._take(rank, message) for message in messages]
        except OSError:
            raise self._end_of(rank) from None
        except (ValueError, OverflowError) as error:
            raise self._invalid(rank, str(error)) from None
        return any(passed)

    def _take(self, rank: Rank, message: Message) -> bool:
        match message:
            case Passed():
                return True
            case OnlyCalls():
                self._answers_only = True
            case CallsWithGradients():
                self._with_gradients = message.count
            case Trains():
                raise RunFailed(how="trains")
            case Over(at_data_end=True):
                raise RunFailed(how="over", steps=message.steps, may_train=message.may_train)
            case Over():
                rank.steps = message.steps
            case Raised():
                raise self._cause(rank, message)
            case _:
                rank.answers.append(message)
        return False

    def _cause(self, rank: Rank, message: Raised) -> RunFailed:
        """A rank raised an exception; a rank that ended without a word is the cause of what others raise."""
        if ended := next((other for other in self._ranks if other is not rank and other.has_ended), None):
            return self._end_of(ended)
        how: How = "memory" if message.out_of_memory else "raised"
        return RunFailed(how=how, detail=message.text, rank=self._name(rank))

    def _invalid(self, rank: Rank, why: str) -> RunFailed:
        return RunFailed(how="invalid", detail=" ".join(why.split())[:300], rank=self._name(rank))

    def _end_of(self, rank: Rank) -> RunFailed:
        """A rank has ended; the command's exit code says more where it ends too."""
        with suppress(subprocess.TimeoutExpired):
            self._keeper.wait(LAUNCHER_SECONDS if starts_ranks(self._start.command) else 2.0)
        code = self._keeper.returncode
        if rank.steps and not code:  # a shell above it may go on
            return RunFailed(how="over", steps=rank.steps)
        return RunFailed(how="ended", rank=self._name(rank), detail=_ending(code))

    def _late(self) -> Rank:
        """A rank that the others wait for."""
        return next(rank for rank in self._ranks if not rank.answers)

    def _name(self, rank: Rank) -> int | None:
        return rank.hello.rank if len(self._ranks) > 1 else None


def _ending(code: int | None) -> str:
    if code is None:
        return ""
    return f"killed by signal {code - 128}" if code > 128 else f"exit code {code}"
