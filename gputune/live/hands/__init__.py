"""Hands: each puts a setting that would take lines of a script into a running model, in a file named as the setting.

A hand has

- `obstacle(root, value) -> Obstacle | None`: why the setting is not put into this model, if it is not;
- `put_in(root, value) -> Value`: puts it in, and returns the value that is in force. It may raise;
- `take_out(root)`, after which the model is as it was before;
- `IN_CALLS`: whether the model's calls may fail because of it, and it is then taken out;
- `INSTEAD`, in some: the value that is put in, by the one that is asked for.

`gputune.live.injection` finds them by their files' names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from ... import plugins
from ...knobs import Value
from ..applied import Why
from ..root import Root


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a setting is not put into a model, and whether because the program does something of the kind itself."""

    why: Why | str
    users: bool = False


class Hand(plugins.Plugin, Protocol):
    IN_CALLS: bool

    def obstacle(self, root: Root, value: Value) -> Obstacle | None: ...

    def put_in(self, root: Root, value: Value) -> Value: ...

    def take_out(self, root: Root) -> None: ...


def put_for(name: str, value: Value) -> Value:
    """The value that is put in where this one is asked for: another one only where a hand says so."""
    if name not in names():
        return value
    instead: Mapping[str, Value] = getattr(load(name), "INSTEAD", {})
    return instead.get(value, value) if isinstance(value, str) else value


def names() -> list[str]:
    """The settings that have a hand, in an order in which each may follow the ones before it."""
    return sorted(plugins.names(__name__))


def load(name: str) -> Hand:
    return cast(Hand, plugins.load(__name__, name))
