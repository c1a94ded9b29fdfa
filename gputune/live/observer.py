"""The one observer of a running program. Its followers hear of events in torch.

A patch of torch is in place only while a follower hears of its event. All followers share it: two wraps of a module's
call that step out of each other's way would lose one another.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..knobs._signals import is_for_the_program
from . import patches
from .patches import Feature

Place = tuple[int, int]
"""A process and a thread of it."""


class Follower:
    """A subclass overrides the methods of the events that it hears of."""

    gradients: bool = True
    """Whether it hears of models' calls with gradients, or else of those without."""
    finds_thread: bool = False
    """Whether it hears of the first thread that makes such a call, rather than of the thread that it follows from.
    Another thread may be deep inside a model of its own when the wrap comes back."""
    home: Place | None = None

    def module_registered(self, outer: Any, name: str, module: Any) -> None:
        """A module is about to belong to another one."""

    def model_calling(self, model: Any, inputs: Any) -> None:
        """A call that `model_called` is to hear of begins."""

    def model_called(self, model: Any, inputs: Any, output: Any) -> None:
        """The program's own call of a module, from outside any other one, returned. `inputs` are the positional and the
        named ones. An exception that is raised here never reaches the program, and is the last call heard of.
        """

    def feature_used(self, feature: Feature, device: str | None) -> None:
        """The program uses a feature; `device` is the type of device of an autocast."""

    def activation_hooked(self, activation: Any) -> None:
        """A hook is put on a tensor."""

    def module_hooked(self, module: Any) -> None:
        """A hook is put on a module's calls, or on those of all modules (None)."""

    def backward_begun(self, losses: list[Any]) -> None:
        """A backward pass begins from these tensors, given as they were before a `GradScaler` scaled them."""

    def gradients_begun(self) -> None:
        """A backward pass begins, perhaps within another one."""

    def capture_begun(self) -> None:
        """The program is about to capture a CUDA graph."""

    def optimizer_stepping(self, optimizer: Any) -> None:
        """A step begins, perhaps within another one, as of a subclass that calls its parent's."""

    def optimizer_stepped(self, optimizer: Any) -> None:
        """A step ended."""


EVENTS = tuple(name for name, one in vars(Follower).items() if callable(one) and hasattr(patches, name))
"""Each is made by the patch of its name."""
LASTING = ("optimizer_stepping", "optimizer_stepped")
"""Their hooks stay: torch may be going through them, and bears no other number of them then."""
followers: dict[str, list[Follower]] = {event: [] for event in EVENTS}
"""By event, in the order in which they hear of it."""
_undo: dict[str, patches.Undo] = {}
_silent: set[Place] = set()
"""Where nobody is told of anything."""


def follow(follower: Follower, *events: str) -> None:
    """Have a follower hear of these events, or of all that it overrides."""
    for event in events or EVENTS:
        overrides = getattr(type(follower), event) is not getattr(Follower, event)
        if overrides and follower not in followers[event]:
            if event == "model_called":
                follower.home = None if follower.finds_thread else here()
            followers[event].append(follower)
            if event not in _undo:
                tell = _call_begun if event == "model_called" else partial(_tell, event)
                _undo[event] = getattr(patches, event)(tell)


def leave(follower: Follower, *events: str) -> None:
    """Have a follower hear of these events no more, or of none at all."""
    for event in events or EVENTS:
        if follower in followers[event]:
            followers[event].remove(follower)
        if not followers[event] and event in _undo and event not in LASTING:
            _undo.pop(event)()


@contextmanager
def silence() -> Iterator[None]:
    """Tell nobody of what this thread does meanwhile, since the program has not asked for it."""
    place = here()
    was_silent = place in _silent
    _silent.add(place)
    try:
        yield
    finally:
        if not was_silent:
            _silent.discard(place)


def is_silent() -> bool:
    """Whether nobody is told of what this thread does."""
    return here() in _silent


def here() -> Place:
    return os.getpid(), threading.get_ident()


def _tell(event: str, *given: Any) -> None:
    if _silent and is_silent():
        return
    for one in tuple(followers[event]):
        getattr(one, event)(*given)


def _call_begun(model: Any, inputs: Any) -> Callable[..., None] | None:
    import torch

    place, gradients = here(), torch.is_grad_enabled()
    if place in _silent:
        return lambda *_: None  # so that the wrap steps aside all the same
    near = [one for one in followers["model_called"] if one.home in (place, None)]
    concerned = [one for one in near if one.gradients == gradients]
    for one in concerned:
        one.home = place
        _tell_one(one, one.model_calling, model, inputs)

    def ended(*found: Any) -> None:
        for one in concerned:
            _tell_one(one, one.model_called, *found)

    return ended if near else None


def _tell_one(one: Follower, tell: Callable[..., None], *found: Any) -> None:
    try:
        tell(*found)
    except Exception as error:
        leave(one, "model_called")
        if is_for_the_program(error):
            raise
