"""torch.compile where it would silently compute something else than it was given."""

from functools import cache
from typing import Any


def tell_caches_apart(dtype: Any = None) -> None:
    """The cache on disk of torch 2.8 to 2.11, at least, takes a graph compiled under one dtype for another's, and one
    from which `alpha` was dropped.
    """
    import torch.compiler

    settings = getattr(torch.compiler, "config", None)
    if getattr(settings, "cache_key_tag", None) == "":
        settings.cache_key_tag = f"autocast {dtype}, alpha kept"  # type: ignore[union-attr]  # getattr found it


@cache
def keep_alpha() -> None:
    """Have `x + alpha * y` compiled as it is written: torch up to 2.14, at least, drops alpha where y is a product of
    matrices, as in a moving average of one.
    """
    import torch
    from torch._inductor import decomposition

    known, name = decomposition.decompositions, torch.ops.aten.add.Tensor
    before = known.get(name, lambda *_, **__: NotImplemented)

    def add(one: Any, other: Any, *, alpha: Any = 1) -> Any:
        return before(one, other) if type(alpha) in (int, float) and alpha == 1 else one + other * alpha

    known[name] = add
    decomposition.fast_random_decomps.cache_clear()  # which copies them


@cache
def seed_apart() -> None:
    """Have the CPU's random numbers, and with them the order of samples, stay as they are: as a graph first runs, torch
    2.8 and newer seed the dropout of parts that are checkpointed on a GPU from them.
    """
    import torch
    import torch._functorch.aot_autograd  # the other's own way in
    from torch._functorch._aot_autograd import runtime_wrappers

    seed = getattr(runtime_wrappers, "initialize_rng_states", None)
    if seed is None:
        return
    source = torch.Generator("cpu").manual_seed(torch.initial_seed())

    def seed_from_others(*given: Any, **named: Any) -> Any:
        if not Compiled.runs:
            return seed(*given, **named)
        state = torch.get_rng_state()
        torch.set_rng_state(source.get_state())
        try:
            return seed(*given, **named)
        finally:
            source.set_state(torch.get_rng_state())
            torch.set_rng_state(state)

    runtime_wrappers.initialize_rng_states = seed_from_others


def graphs() -> int:
    """The number of graphs that torch has compiled in this process."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


class Compiled:
    """A function through torch.compile, anew once weights of a model are unfrozen: what torch 2.4 to 2.11, at least,
    compiled before gives these no gradients.
    """

    runs = False
    """Whether one of them runs."""

    def __init__(self, function: Any, model: Any, options: dict[str, Any] | None) -> None:
        self._function, self._model, self._options = function, model, options
        self._begin()

    def _begin(self) -> None:
        import torch

        self._graphs: int | None = None
        """The number of compiled graphs when frozen weights were last looked for."""
        self._frozen: list[Any] = []
        # torch counts how often it compiles by code, not by function.
        self._function.__code__ = self._function.__code__.replace()
        self._call = torch.compile(self._function, options=self._options)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if self._frozen and any(one.requires_grad for one in self._frozen):
            self._begin()
        Compiled.runs = True
        try:
            return self._call(*inputs, **named)
        finally:
            Compiled.runs = False
            if self._graphs != (now := graphs()):
                self._graphs = now
                self._frozen = [one for one in self._model.parameters() if not one.requires_grad]
