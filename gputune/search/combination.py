"""A combination of settings that a program is run with; everything that it does not name is torch's default. And what
the search must know of a setting: constants of its file, which `gputune/knobs/__init__.py` explains.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from gputune.knobs import LEVELS, Limits, Need, Numerics, Stage, Value, in_order, load
from gputune.knobs.dataloader_workers import WORKERS

OF_FP32 = Limits()


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Each field is the constant of that name, or its default if the file has none."""

    stage: Stage | None = None
    candidate: Value = None
    after: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    spares_host: bool = False
    precision_limits: Limits = OF_FP32


@cache
def traits(name: str) -> Traits:
    module = load(name)
    known: dict[str, Any] = {field.name: getattr(module, field.name.upper(), field.default) for field in fields(Traits)}
    return Traits(**known)


def level(name: str) -> int:
    """The place in `LEVELS` of a setting's effect on results."""
    return LEVELS.index(load(name).NUMERICS)


def of_stage(stage: Stage, candidates: Collection[str]) -> list[str]:
    return [name for name in in_order(candidates) if traits(name).stage == stage]


def with_what_comes_before(names: Iterable[str], candidates: Collection[str]) -> set[str]:
    """Settings, and all candidates that these are tried on top of."""
    found: set[str] = set()
    left = list(names)
    while left:
        found.add(name := left.pop())
        left += [one for one in traits(name).after if one in candidates and one not in found]
    return found


@dataclass(frozen=True, slots=True)
class Combination:
    items: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> Combination:
        return cls(tuple(sorted(values.items())))

    @property
    def values(self) -> dict[str, Value]:
        return dict(self.items)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    @property
    def workers(self) -> int | None:
        """The number of workers of the program's DataLoader; None for the number that the program gives it."""
        value = self.values.get(WORKERS)
        return value if isinstance(value, int) else None

    @property
    def level(self) -> Numerics:
        return LEVELS[max((level(name) for name, _ in self.items), default=0)]

    @property
    def effect(self) -> int:
        """On results, as a number that is larger for a larger one. Another order of rounding counts as none."""
        return max(LEVELS.index(self.level), LEVELS.index("rounding"))

    @property
    def limits(self) -> Limits:
        """How far results may be from FP32's: for each kind of result the most that any of its settings explains."""
        own = [traits(name).precision_limits for name, _ in self.items] or [OF_FP32]
        return Limits(**{field.name: max(getattr(one, field.name) for one in own) for field in fields(Limits)})

    @property
    def is_compiled(self) -> bool:
        return self != self.uncompiled

    @property
    def uncompiled(self) -> Combination:
        return self._where(lambda name: traits(name).stage != "compile")

    def with_all(self, values: Mapping[str, Value]) -> Combination:
        return self.of({**self.values, **values})

    def plus(self, name: str, value: Value) -> Combination:
        return self.with_all({name: value})

    def minus(self, *names: str) -> Combination:
        return self._where(lambda name: name not in names)

    def only(self, name: str) -> Combination:
        return self._where(lambda own: own == name)

    def beyond(self, other: Combination) -> Combination:
        """The settings that the other one lacks, or has with another value."""
        return self.of(dict(set(self.items) - set(other.items)))

    def within(self, numerics: Numerics) -> Combination:
        """This one without the settings whose effect on results is larger."""
        return self._where(lambda name: level(name) <= LEVELS.index(numerics))

    def _where(self, keeps: Callable[[str], bool]) -> Combination:
        return Combination(tuple(item for item in self.items if keeps(item[0])))

    def __str__(self) -> str:
        return " + ".join(_word(*item) for item in self.items) or "torch's defaults"


def _word(name: str, value: Value) -> str:
    if noun := {WORKERS: "worker", "omp_threads": "thread"}.get(name):
        return f"{value} {noun}{'' if value == 1 else 's'}"
    return name if value is True else str(value)


DEFAULT = Combination()
