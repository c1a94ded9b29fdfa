"""What a model returned, as a sample of each tensor's elements: little to send to where runs are compared."""

from collections.abc import Iterator
from typing import Any

from ...knobs._outputs import leaves, opaque
from ..models import unwrapped
from ..records import Output

SAMPLE = 1024
"""A share of 15 % is told within 1.1 %, and an output takes 10 KB."""
DIGITS = 6
CHUNK = 1 << 24
"""So many elements are looked at together, as far as rows allow: 16 MB."""
LONGEST_NAME = 80


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
    rows = max(1, CHUNK // max(1, values[:1].numel()))
    return sum(part.numel() - int(part.isfinite().sum()) for part in values.split(rows))


def _places(values: Any) -> Any:
    """All, or those that multiples of the golden ratio give, which follow no stride of the tensor's."""
    import torch

    count = values.numel()
    places = torch.arange(min(count, SAMPLE), device=values.device)
    return places if count <= SAMPLE else ((places.double() * 0.6180339887498949) % 1 * count).long()
