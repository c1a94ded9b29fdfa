"""The record of one guard run, and how far the gradients of two such runs are apart. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Gradient:
    """A parameter's gradient: its norm, and its sketch, whose differences tell the norms of differences."""

    norm: float
    sketch: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The losses of one guard run, and the gradients and optimizer's steps of one of its iterations."""

    losses: tuple[float | None, ...]
    compared: int
    """The number of the iteration, from 1, whose loss, gradients and steps are compared."""
    gradients: tuple[Gradient, ...]
    steps: tuple[tuple[float, float, float], ...]
    """For each parameter the norms of the difference between the real and the plain update, of the plain update, and of
    the values before it."""
    unchecked: tuple[str, ...] = ()
    """Why the steps of an optimizer could not be held against the plain form's."""

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Raises ValueError for what `Recorder.plain` does not make."""
        try:
            found = cls(
                losses=tuple(None if one is None else float(one) for one in data["losses"]),
                compared=int(data["compared"]),
                gradients=tuple(Gradient(float(norm), tuple(map(float, own))) for norm, _, own in data["gradients"]),
                steps=tuple((float(a), float(b), float(c)) for a, b, c in data["steps"]),
                unchecked=tuple(map(str, data.get("unchecked", ()))),
            )
        except (AttributeError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not a record: {type(error).__name__}: {error}") from None
        if found.compared < 1 or len({len(one.sketch) for one in found.gradients}) > 1:
            raise ValueError("not a record: its sketches have several lengths, or it compares no iteration")
        return found

    @property
    def loss(self) -> float | None:
        """The loss of the compared iteration."""
        return self.losses[self.compared - 1] if len(self.losses) >= self.compared else None


def typical(one: Recorded) -> float:
    """The mean size of a run's losses."""
    return fmean(abs(loss) for loss in one.losses if loss is not None)


def error_of(plain: Recorded, other: Recorded) -> float:
    """The norm of the difference of all gradients, to that of FP32's."""
    whole = norm_of(plain)
    pairs = zip(plain.gradients, other.gradients, strict=False)
    return math.sqrt(sum(distance(old, new) ** 2 for old, new in pairs)) / whole if whole else 0.0


def along_of(plain: Recorded, other: Recorded, error: float) -> float:
    """The part of the gradients along FP32's, to these: from the lengths of all three sides of the triangle."""
    ratio = norm_of(other) / norm_of(plain)
    return (1 + ratio**2 - error**2) / 2


def norm_of(one: Recorded) -> float:
    """The norm of all gradients of a run together."""
    return math.sqrt(sum(gradient.norm**2 for gradient in one.gradients))


def distance(old: Gradient, new: Gradient) -> float:
    """The norm of the difference of two gradients, estimated from their sketches."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(old.sketch, new.sketch, strict=True)))
