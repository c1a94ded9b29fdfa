"""What is recorded of one batch of a program, little enough to be sent and compared: outputs as a sample of elements,
gradients as sketches. Nothing random is drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..knobs._outputs import leaves, opaque
from .models import unwrapped

SAMPLE = 1024
"""A share of 15 % is told within 1.1 %, and an output takes 10 KB."""
DIGITS = 6
ROWS = 1 << 24
"""So many elements are looked at together, as far as rows allow: 16 MB."""
LONGEST_NAME = 80
SIZE = 64
"""Numbers of a sketch: the norm is estimated with a standard error of one part in eleven."""
SKETCH_DIGITS = 5
"""How many digits each number of a sketch has, so that one takes 0.7 KB and thousands fit into a message."""
CHUNK = 1 << 22


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


def outputs_of(model: Any, output: Any) -> Iterator[Output]:
    """Raises TypeError at something that may hold tensors and cannot be looked into, RuntimeError while a CUDA graph is
    captured, which reading would break, and whatever torch does where a tensor's elements cannot be read.
    """
    import torch

    if _is_traced(model):
        return
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("a CUDA graph is captured")
    name = type(unwrapped(model)).__name__
    for place, one in leaves(output):
        yield _recorded(f"{name}'s output{place}"[:LONGEST_NAME], one)
    if kind := opaque(output):
        raise TypeError(f"it holds a {kind}")


def _is_traced(model: Any) -> bool:
    """Whether it is what torch.compile made of a function of the program's: it also returns what backward needs."""
    import torch

    return isinstance(model, torch.fx.GraphModule) and next(iter(model.parameters()), None) is None


def _recorded(name: str, tensor: Any) -> Output:
    import torch

    values = tensor.detach()
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    is_whole = not values.is_floating_point()
    values = values if values.dim() else values.reshape(1)
    sample = values[torch.unravel_index(_places(values), values.shape)]  # which copies no large tensor, as a view might
    return Output(
        name=name,
        shape=tuple(tensor.shape),
        is_whole=is_whole,
        sample=tuple(float(f"{one:.{DIGITS}g}") if not is_whole else float(one) for one in sample.tolist()),
        not_finite=0 if is_whole else _not_finite(values),
        total=float(values.sum()) if is_whole else 0.0,
    )


def _not_finite(values: Any) -> int:
    rows = max(1, ROWS // max(1, values[:1].numel()))
    return sum(part.numel() - int(part.isfinite().sum()) for part in values.split(rows))


def _places(values: Any) -> Any:
    """All, or those that multiples of the golden ratio give, which follow no stride of the tensor's."""
    import torch

    count = values.numel()
    places = torch.arange(min(count, SAMPLE), device=values.device)
    return places if count <= SAMPLE else ((places.double() * 0.6180339887498949) % 1 * count).long()


def gradient_of(gradient: Any) -> Gradient:
    import torch

    if gradient.is_sparse:
        gradient = gradient.coalesce().values()
    if gradient.is_complex():
        gradient = torch.view_as_real(gradient)
    return Gradient(float(gradient.float().norm()), tuple(sketch(gradient)))


def sketch(tensor: Any) -> list[float]:
    """`SIZE` sums, each over every `SIZE`-th element, with signs from a hash of its place: nothing random is drawn."""
    import torch

    flat = tensor.detach().reshape(-1)
    sums = torch.zeros(SIZE, dtype=torch.float64, device=flat.device)
    for begin in range(0, flat.numel(), CHUNK):
        part = flat[begin : begin + CHUNK].double()
        signed = part * _signs(begin, part.numel(), flat.device)
        short = -signed.numel() % SIZE
        sums += torch.nn.functional.pad(signed, (0, short)).view(-1, SIZE).sum(0)
    return [float(f"{one:.{SKETCH_DIGITS}g}") for one in sums.tolist()]


def _signs(begin: int, count: int, device: Any) -> Any:
    """+1 or -1 for each place. The hash mixes the bits of 32-bit numbers as Murmur's finaliser does."""
    import torch

    mask = 0xFFFFFFFF
    x = torch.arange(begin, begin + count, device=device, dtype=torch.int64) & mask
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        x = ((x ^ (x >> 15)) * factor) & mask
    return (((x ^ (x >> 16)) & 1) * 2 - 1).double()
