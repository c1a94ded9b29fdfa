"""What could not be read, and why. Absence is never health."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gputune.host import Unreadable
from gputune.resources.unreadable import Cause

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A fact or a measurement that is missing. `fact` is its dotted name (`cpu.quota`, `bench.conv`)."""

    fact: str
    reason: str
    cause: Cause | None = None
    """What code may ask of the reason; None where nobody needs to tell it apart."""


class Gaps:
    """Collects the gaps of one reading: `gaps.read("cpu.model", lambda: ...)` gives the value, or None and a Gap."""

    def __init__(self) -> None:
        self.found: list[Gap] = []

    def add(self, fact: str, reason: str, cause: Cause | None = None) -> None:
        self.found.append(Gap(fact=fact, reason=reason, cause=cause))

    def read(self, fact: str, reader: Callable[[], T]) -> T | None:
        try:
            return reader()
        except Unreadable as error:
            self.add(fact, str(error), error.cause)
        except Exception as error:  # a reader's own fault must not cost the other facts
            self.add(fact, f"{type(error).__name__}: {error}")
        return None
