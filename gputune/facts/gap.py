"""Gaps: what could not be read, and why. A missing fact never counts as healthy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gputune.host import Unreadable
from gputune.resources.unreadable import Cause

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A missing fact or measurement: `fact` is its dotted name (`cpu.quota`, `bench.conv`), `reason` is for people."""

    fact: str
    reason: str
    cause: Cause | None = None
    """The reason as data, for code; None if no code has to tell it from others."""


class Gaps:
    """Collects gaps: `gaps.read("cpu.model", reader)` returns `reader()`, or None and adds a Gap if that raises."""

    def __init__(self) -> None:
        self.found: list[Gap] = []

    def add(self, fact: str, reason: str, cause: Cause | None = None) -> None:
        self.found.append(Gap(fact=fact, reason=reason, cause=cause))

    def read(self, fact: str, reader: Callable[[], T]) -> T | None:
        try:
            return reader()
        except Unreadable as error:
            self.add(fact, str(error), error.cause)
        except Exception as error:  # a bug in one reader must not cost the other facts
            self.add(fact, f"{type(error).__name__}: {error}")
        return None
