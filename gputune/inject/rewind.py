"""Going back to before a call that is to be repeated, as far as it draws random numbers and counts in its buffers."""

from collections.abc import Callable
from typing import Any


def rewinder(model: Any, device: str) -> Callable[[], None]:
    """A function that puts torch's random states, and the model's buffers, back to what they are now."""
    import torch
    from torch.nn.parameter import is_lazy

    on_cpu, on_device = torch.get_rng_state(), torch.cuda.get_rng_state() if device == "cuda" else None
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers() if not is_lazy(buffer)]

    def rewind() -> None:
        torch.set_rng_state(on_cpu)
        if on_device is not None:
            torch.cuda.set_rng_state(on_device)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)

    return rewind
