"""One microbenchmark a file, run in the bench process: Facts in, Measurements out.

`Bench` says what the file of a bench holds, and `BenchTraits` what else it may. Its docstring is what `gputune explain
NAME` prints. Files whose name starts with an underscore are what benches share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, Protocol, cast

from gputune import plugins
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement

if TYPE_CHECKING:
    from gputune.bench_process import Context


class Bench(plugins.Plugin, Protocol):
    """One microbenchmark. If it needs more than torch, it has `needs(facts: Facts, device: str) -> str | None`,
    which returns why it cannot run on the device.
    """

    SECONDS: Mapping[str, Mapping[str, float]]
    """How long it may measure, by kind of device (cuda, cpu) and budget; it is left out of those that are missing."""
    RANK: float
    """Benches run in the order of their ranks, the most valuable (1) first; equal ranks in the order of their names."""

    def measure(self, context: Context) -> Iterator[Measurement | Gap]:
        """Yield each measurement once it is complete, and a Gap for what could not be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTraits:
    """The optional constants of a bench (OPTION, USER_CODE, ...) and their defaults."""

    option: str | None = None
    """The field of Context with the items that the user named, such as shapes; SECONDS are then for each item."""
    user_code: bool = False
    """It runs the user's code, so the next bench gets a fresh process."""
    of_the_host: bool = False
    """It measures the host: where all GPUs of a node are measured at once, it runs once, alone."""
    imports: tuple[str, ...] = ()
    """Modules that take long to import; the process imports them before the benches begin."""
    least_seconds: Mapping[str, float] = field(default_factory=dict)
    """The seconds that the bench takes on a kind of device even when it is given fewer; for a kind not named, none."""
    side_by_side: bool = False
    """It compares the GPUs of a node: it runs only where all of them are measured at once."""


def traits(bench: Bench) -> BenchTraits:
    names = (one.name for one in fields(BenchTraits))
    return BenchTraits(**{name: getattr(bench, name.upper()) for name in names if hasattr(bench, name.upper())})


def missing(bench: Bench, facts: Facts, device: str) -> str | None:
    """Return why a bench cannot run on a device, or None. Every bench needs torch; its `needs` says what else."""
    if not facts.libraries.torch:
        reasons = (gap.reason for gap in facts.gaps if gap.fact == "libraries.torch")
        return next(reasons, "torch is not installed")
    needs = getattr(bench, "needs", None)
    return needs(facts, device) if needs else None


def names() -> list[str]:
    return sorted(plugins.names(__name__), key=lambda name: (load(name).RANK, name))


def load(name: str) -> Bench:
    """Return the module of one bench. Raises KeyError for a name that is not a bench's."""
    return cast(Bench, plugins.load(__name__, name))


def kind_of(device: str) -> Literal["cuda", "cpu"]:
    return "cuda" if device.startswith("cuda") else "cpu"
