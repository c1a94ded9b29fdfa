"""What is asked of a measuring run, and what it found."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gputune.facts import Facts
from gputune.knobs import Value
from gputune.live.orders import Found, Hello
from gputune.profile import Guard
from gputune.search.budget import Scarce
from gputune.search.choice import Tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The order for a measuring run: the settings it may try, on which machine, within which limits."""

    candidates: Mapping[str, Value]
    facts: Facts
    steps: int | None = None
    """The most steps that the search may take; None for its own limit."""
    compared_calls: int = 0
    """How many calls' outputs are compared with FP32's for each combination, in a program that trains nothing."""


@dataclass(kw_only=True)
class SearchResult:
    hello: Hello
    found: Found
    arms: list[Tried]
    """The last comparison: torch's defaults, the winner, what is left of it within each level, and its rivals."""
    tried: list[Tried]
    left: dict[str, str]
    """By setting, why it could not be tried."""
    failed: dict[str, str]
    seconds: float
    conditions: dict[str, float]
    agreed: dict[str, Guard] = field(default_factory=dict)
    """By combination, how its outputs agree with FP32's; empty for a program that trains."""
    waits: float = 0.0
    """The share of a step with torch's defaults in which the program waits for its data."""
    dataset: str | None = None
    """The class of the dataset whose DataLoader was tried with workers; None if none was."""
    disturbed: str = ""
    """Who used the machine, where that left open what calm rounds alone tell."""
    scarcest: Scarce = "seconds"
    """As `Budget.scarcest`."""
    steps: int = 10**9
    """So many steps, or calls, the program has at the least."""
    length: int | None = None
    """As `Attempts.length`."""
