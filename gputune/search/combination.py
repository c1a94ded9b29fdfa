"""A combination of settings that a program is run with; everything that it does not name is torch's default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from gputune.knobs import LEVELS, Limits, Numerics, Value
from gputune.search.traits import OF_FP32, level, traits

WORKERS = "dataloader_workers"


@dataclass(frozen=True, slots=True)
class Combination:
    """Settings and their values, by name."""

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
        """This one without all but one of its settings."""
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
    if name == WORKERS:
        return f"{value} worker{'' if value == 1 else 's'}"
    if name == "omp_threads":
        return f"{value} thread{'' if value == 1 else 's'}"
    return name if value is True else str(value)


DEFAULT = Combination()
