"""What can be added as one file: a setting, a check, a bench. A plug-in is a module of its package, and its name is its file's.

Files that begin with an underscore, and folders, are what the plug-ins of a package share.
"""

from __future__ import annotations

import importlib
import pkgutil
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
    from gputune.measurement import Measurement
    from gputune.settings import Choice


class Plugin(Protocol):
    """What every plug-in has: its docstring is what `gputune explain NAME` prints."""

    __name__: str
    __doc__: str | None


class Setting(Plugin, Protocol):
    """One knob; `gputune/settings/__init__.py` says which of these a PHASE has."""

    VALUE: Any
    PHASE: Literal["launch", "process", "code"]
    NUMERICS: Literal["exact", "rounding", "tf32", "mixed"]
    DEPENDS: tuple[str, ...]
    USE: str
    NAMES: tuple[str, ...]

    def recommend(self, facts: Facts, measurements: Sequence[Measurement]) -> Choice: ...

    def environ(self, value: Any) -> dict[str, str]: ...

    def apply(self, value: Any) -> None: ...

    def current(self) -> Any: ...

    def default(self) -> Any: ...


class Check(Plugin, Protocol):
    """One question about the machine."""

    def check(self, facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]: ...


class Bench(Plugin, Protocol):
    """One microbenchmark."""

    SECONDS: Mapping[str, Mapping[str, float]]
    RANK: int

    def needs(self, facts: Facts, device: str) -> str | None: ...

    def measure(self, context: Context) -> Iterator[Measurement | Gap]: ...


@cache
def names(package: str) -> tuple[str, ...]:
    """The sorted names of the plug-ins of an imported package, given by its dotted name."""
    found = pkgutil.iter_modules(sys.modules[package].__path__)
    return tuple(sorted(one.name for one in found if not one.name.startswith("_") and not one.ispkg))


def load(package: str, name: str) -> ModuleType:
    """The module of one plug-in. Raises KeyError for a name that is none."""
    if name not in names(package):
        raise KeyError(name)
    return importlib.import_module(f"{package}.{name}")


def name_of(plugin: Plugin | ModuleType) -> str:
    """The name under which a plug-in is known."""
    return plugin.__name__.rpartition(".")[2]
