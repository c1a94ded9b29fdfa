"""Sources of random numbers, whose state can be read and put back."""

import pickle
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def common_sources(tensors: Iterable[Any], device: str) -> list[Any]:
    """The global random number generators: torch's for the CPU and for the GPUs that these tensors are on, if `device`
    is "cuda"; Python's; and NumPy's, if it is imported.
    """
    import torch

    devices = {one.device for one in tensors if one.device.type == device == "cuda"}
    generators = [torch.default_generator, *(torch.cuda.default_generators[one.index] for one in devices)]
    return [*generators, random, *filter(None, [sys.modules.get("numpy.random")])]


@contextmanager
def put_back_after(sources: Iterable[Any]) -> Iterator[None]:
    before = [(one, state_of(one)) for one in sources]
    try:
        yield
    finally:
        for one, was in before:
            set_state(one, was)


def state_of(source: Any) -> Any:
    if hasattr(source, "get_state"):
        return source.get_state()
    return source.getstate() if hasattr(source, "getstate") else source.bit_generator.state  # NumPy's newer kind


def set_state(source: Any, state: Any) -> None:
    if hasattr(source, "set_state"):
        source.set_state(state)
    elif hasattr(source, "setstate"):
        source.setstate(state)
    else:
        source.bit_generator.state = state


def is_state(source: Any, state: Any) -> bool:
    """Whether a source of random numbers is in this state."""
    import torch

    now = state_of(source)
    return torch.equal(now, state) if isinstance(now, torch.Tensor) else pickle.dumps(now) == pickle.dumps(state)


def draws(one: Any) -> bool:
    """Whether it is a source of random numbers whose state can be read."""
    import torch

    numpy: Any = sys.modules.get("numpy.random")
    return not isinstance(one, random.SystemRandom) and isinstance(
        one, (torch.Generator, random.Random, *((numpy.RandomState, numpy.Generator) if numpy else ()))
    )
