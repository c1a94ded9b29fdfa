"""A combination of settings that a program is run with; everything that it does not name is torch's default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gputune import knobs
from gputune.knobs import LEVELS, Numerics, Value
from gputune.live.loading import WORKERS
from gputune.trials.recorded import Precision


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

    @property
    def workers(self) -> int | None:
        """The number of workers of the program's DataLoader; None for the number that the program gives it."""
        value = self.values.get(WORKERS)
        return value if isinstance(value, int) else None

    @property
    def level(self) -> Numerics:
        return max((knobs.load(name).NUMERICS for name, _ in self.items), key=LEVELS.index, default="exact")

    @property
    def precision(self) -> Precision:
        values = self.values
        if "amp_dtype" in values:
            return "bfloat16"
        return "tf32" if "matmul_precision" in values else "ieee"

    def with_all(self, values: Mapping[str, Value]) -> Combination:
        return self.of({**self.values, **values})

    def plus(self, name: str, value: Value) -> Combination:
        return self.with_all({name: value})

    def minus(self, name: str) -> Combination:
        return self.of({n: v for n, v in self.items if n != name})

    def only(self, name: str) -> Combination:
        """This one without all but one of its settings."""
        return self.of({n: v for n, v in self.items if n == name})

    def beyond(self, other: Combination) -> Combination:
        """The settings that the other one lacks, or has with another value."""
        return self.of(dict(set(self.items) - set(other.items)))

    def within(self, level: Numerics) -> Combination:
        """This one without the settings whose effect on results is larger."""
        return self.of({n: v for n, v in self.items if LEVELS.index(knobs.load(n).NUMERICS) <= LEVELS.index(level)})

    def __str__(self) -> str:
        return " + ".join(_word(*item) for item in self.items) or "torch's defaults"


def _word(name: str, value: Value) -> str:
    if name == WORKERS:
        return f"{value} worker{'' if value == 1 else 's'}"
    if name == "omp_threads":
        return f"{value} thread{'' if value == 1 else 's'}"
    return name if value is True else str(value)


DEFAULT = Combination()
