"""Settings, checks and benches: plug-ins of one file each, whose name is the file's.

Files whose name begins with an underscore, and folders, hold what the plug-ins of a package share.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from gputune.bench_process import Context
    from gputune.checks import Finding
    from gputune.facts import Facts
    from gputune.facts.gap import Gap
    from gputune.knobs import Choice
    from gputune.measurement import Comparison, Measurement


class Plugin(Protocol):
    """The common part of all three kinds. The docstring is what `gputune explain NAME` prints."""

    __name__: str
    __doc__: str | None


class Setting(Plugin, Protocol):
    """One knob; `gputune/knobs/__init__.py` says which of these a PHASE has."""

    VALUE: Any
    PHASE: Literal["launch", "process", "code"]
    NUMERICS: Literal["exact", "rounding", "tf32", "mixed"]
    DEPENDS: tuple[str, ...]
    USE: str
    NAMES: tuple[str, ...]

    def recommend(self, facts: Facts, measurements: Sequence[Measurement]) -> Choice: ...

    def gain_of(
        self, facts: Facts, measurements: Sequence[Measurement], value: Any, family: str
    ) -> Comparison | None: ...

    def environ(self, value: Any) -> dict[str, str]: ...

    def apply(self, value: Any) -> None: ...

    def current(self) -> Any: ...

    def default(self) -> Any: ...


class Check(Plugin, Protocol):
    """One question about the machine."""

    def check(self, facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]: ...


class Bench(Plugin, Protocol):
    """One microbenchmark. `gputune.benches.BenchTraits` lists the constants that a bench may have besides.

    A bench that needs more than torch has a function `needs(facts: Facts, device: str) -> str | None`, which returns
    why it cannot run on the device, or None.
    """

    SECONDS: Mapping[str, Mapping[str, float]]
    """How long it may measure, by kind of device (cuda, cpu) and budget; it is left out of those that are missing."""
    RANK: float
    """Benches run in the order of their ranks, the most valuable (1) first; equal ranks in the order of their names."""

    def measure(self, context: Context) -> Iterator[Measurement | Gap]:
        """Yield each measurement once it is complete, and a Gap for what could not be measured."""


@cache
def names(package: str) -> tuple[str, ...]:
    """Return the sorted names of the plug-ins of an imported package, given by its dotted name."""
    files = (name for folder in sys.modules[package].__path__ for name in os.listdir(folder))  # noqa: PTH208 - cheaper
    plugins = (name[:-3] for name in files if name.endswith(".py") and not name.startswith("_"))
    return tuple(sorted(filter(str.isidentifier, plugins)))


def load(package: str, name: str) -> ModuleType:
    """Return the module of one plug-in. Raises KeyError for a name that is not a plug-in's."""
    if name not in names(package):
        raise KeyError(name)
    return importlib.import_module(f"{package}.{name}")


def name_of(plugin: Plugin | ModuleType) -> str:
    return plugin.__name__.rpartition(".")[2]
