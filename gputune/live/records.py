"""What a guard run records of a program, small enough to be compared with another run's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gradient:
    """A parameter's gradient: its norm, and its sketch, whose differences tell the norms of differences."""

    norm: float
    sketch: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A tensor or a number that a model returned."""

    name: str
    """As `Net's output[1]`."""
    shape: tuple[int, ...]
    is_whole: bool
    """Whether its elements are whole numbers or booleans."""
    sample: tuple[float, ...]
    """Some of its elements, or all of few, at the same places in each run."""
    not_finite: int = 0
    """How many of all its elements are no finite numbers."""
    total: float = 0.0
    """The sum of whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The losses of one guard run, and the outputs, gradients and optimizer's steps of one of its iterations."""

    losses: tuple[float | None, ...]
    """The loss of each iteration, which may be no number; None if no loss was seen."""
    compared: int
    """The number of the iteration, from 1, whose loss, outputs, gradients and steps are compared."""
    gradients: tuple[Gradient, ...]
    steps: tuple[tuple[float, float, float], ...]
    """For each parameter the norms of the difference between the real and the plain update, of the plain update, and of
    the values before it."""
    outputs: tuple[Output, ...] = ()
    """Of the models' calls, in their order."""
    evaluates: bool = False
    """Whether a model was called without gradients in the compared iteration or later."""
    unchecked: tuple[str, ...] = ()
    """What could not be recorded, and why: as `the optimizer's step was not compared (Lion)`."""

    @property
    def loss(self) -> float | None:
        return self.losses[self.compared - 1] if len(self.losses) >= self.compared else None
