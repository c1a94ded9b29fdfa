"""One process in a run of a program that is being tuned: it connects after its first step, and obeys orders.

Whatever goes wrong in here ends the process, since nothing that it would measure afterwards is worth anything.
"""

import atexit
import importlib
import logging
import multiprocessing
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

from ...resources.messages import decode, encode
from ..advice import entry
from ..faults import is_out_of_memory
from ..iterations import GradientCalls, Iterations
from ..orders import (
    AnyOrder,
    Assignment,
    CallsWithGradients,
    Done,
    End,
    Hello,
    Message,
    OnlyCalls,
    Over,
    Raised,
    Trains,
)
from .loaders import Loaders


class Lost(ConnectionError):
    """gputune has gone away."""


class Channel:
    """A connection for this process alone: a fork that inherits it neither sends nor receives."""

    def __init__(self, path: str) -> None:
        """Raises OSError where nobody listens."""
        self.pid = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")

    def send(self, message: Message) -> None:
        """Raises Lost."""
        try:
            self._socket.sendall(encode(message))
        except OSError as error:
            raise Lost(str(error)) from None

    def receive(self) -> AnyOrder:
        """Wait for the next order. Raises Lost."""
        try:
            line = self._lines.readline()
        except OSError as error:
            raise Lost(str(error)) from None
        if not line.endswith(b"\n"):
            raise Lost("gputune ended")
        order: AnyOrder = decode(line, AnyOrder, lambda kind, fields: kind(**fields))
        return order


def end() -> NoReturn:
    """Exit with 1, without running any handler of the program's."""
    quiesce()
    os._exit(1)


def quiesce() -> None:
    """Flush what was written, and end the children."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]  # what logging.shutdown goes through
        with suppress(Exception):
            reference().flush()
    with suppress(Exception):
        for child in multiprocessing.active_children():
            child.kill()


def place() -> dict[str, int]:
    """The fields of `Hello` about ranks, as far as anything says so."""
    import torch

    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        rank, world = distributed.get_rank(), distributed.get_world_size()
    else:
        rank, world = _number("RANK", 0), _number("WORLD_SIZE", 1)
    return {"rank": rank, "world": world, "local": _number("LOCAL_WORLD_SIZE", world)}


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise


WORK = {"measure": "measuring", "guard": "recording", "time": "timing"}
"""The module whose `work` says what a process does in each role: a generator of how many iterations to let pass before
it goes on, which never ends by itself."""


class Run:
    def __init__(self, assignment: Assignment, device: str) -> None:
        self.assignment = assignment
        self.device = device
        self.loaders = Loaders(self._data_ended)
        self.iterations = Iterations(self._ended, self._suspected, self._mistaken, trains=assignment.trains)
        self._channel: Channel | None = None
        self._work: Iterator[int] = iter(())
        self._left = 1

    def start(self) -> None:
        self.loaders.start()
        self.iterations.start()
        if self.assignment.trains is None:
            GradientCalls(self._with_gradients).start()
        module = importlib.import_module(f".{WORK[self.assignment.role]}", __package__)
        self._work = module.work(self)
        self._left = next(self._work)
        atexit.register(self._exiting)

    def send(self, message: Message) -> None:
        """Raises Lost."""
        if self._channel is None:
            import torch

            version = str(torch.__version__)
            self._channel = Channel(self.assignment.socket)
            self._channel.send(Hello(pid=os.getpid(), entry=entry(), torch=version, device=self.device, **place()))
            self._follow_exceptions()
        self._channel.send(message)

    def receive(self) -> AnyOrder:
        """The next order. Where that is to end, flush, say so, and end when all ranks have done so. Raises Lost."""
        assert self._channel is not None
        order = self._channel.receive()
        if isinstance(order, End):
            quiesce()
            self.send(Done())
            self._channel.receive()
            os._exit(0)
        return order

    def raised(self, error: BaseException) -> None:
        """Tell of an exception, and end: a failed step is never repeated."""
        text = " ".join(str(error).split())[:300]
        self.send(Raised(text=f"{type(error).__name__}: {text}", out_of_memory=is_out_of_memory(error)))
        end()

    def _suspected(self) -> None:
        with suppress(Lost):
            self.send(OnlyCalls())

    def _with_gradients(self, count: int) -> None:
        with suppress(Lost):
            self.send(CallsWithGradients(count=count))

    def _mistaken(self) -> None:
        with suppress(Lost):
            self.send(Trains())
        end()

    def _data_ended(self) -> None:
        """In a measuring run of an inference-only program nothing behind the loop runs. A training has more epochs."""
        if self.assignment.role == "measure" and self.iterations.are_calls:
            try:
                self.send(Over(steps=self.iterations.made, at_data_end=True, may_train=self.loaders.may_train))
                self.receive()  # the order to end
            except Lost:
                pass
            end()

    def _exiting(self) -> None:
        if self._channel is not None and self._channel.pid == os.getpid():
            self.loaders.go_on()
            with suppress(Lost):
                self.send(Over(steps=self.iterations.made))

    def _ended(self) -> None:
        self._left -= 1
        if self._left > 0:
            return
        try:
            self._left = next(self._work)
        except Lost:
            end()
        except Exception as error:
            self.raised(error)

    def _follow_exceptions(self) -> None:
        """Tell of an exception that ends the program, whose own words go where they always do."""
        original = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            original(kind, error, trace)
            if self._channel is not None and self._channel.pid == os.getpid():
                self.raised(error)

        sys.excepthook = hook


def start(text: str) -> None:
    """Begin to obey. `text` is that of the assignment."""
    import torch

    assignment = Assignment.parse(text)
    if assignment.shift is not None:
        from .seeds import shift

        shift(assignment.shift)
    Run(assignment, "cuda" if torch.cuda.is_available() else "cpu").start()
