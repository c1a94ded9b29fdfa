"""What the search must know of a setting: constants of its file, which `gputune/knobs/__init__.py` explains."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from gputune.knobs import LEVELS, Limits, Need, Stage, Value, load

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
    """The candidates of a stage: first those that come after no other setting, then by their effect on results."""
    found = (name for name in candidates if traits(name).stage == stage)
    return sorted(found, key=lambda name: (len(traits(name).after), level(name), name))


def with_what_comes_before(names: Iterable[str], candidates: Collection[str]) -> set[str]:
    """Settings, and all candidates that these are tried on top of."""
    found: set[str] = set()
    left = list(names)
    while left:
        found.add(name := left.pop())
        left += [one for one in traits(name).after if one in candidates and one not in found]
    return found
