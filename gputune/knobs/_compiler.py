"""torch.compile where it would silently compute something else than it was given."""

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import cache, partial, wraps
from typing import Any

from ._backward import BackwardFailed, Changes
from ._outputs import nodes_behind


def tell_caches_apart(dtype: Any = None) -> None:
    """The cache on disk of torch 2.8 to 2.11, at least, takes a graph compiled under one dtype for another's, one from
    which `alpha` was dropped, and one that gives its buffers away.
    """
    import torch.compiler

    settings = getattr(torch.compiler, "config", None)
    if getattr(settings, "cache_key_tag", None) == "":
        settings.cache_key_tag = f"autocast {dtype}, alpha and buffers kept"  # type: ignore[union-attr]  # getattr found it


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


def keep_buffers() -> None:
    """Have a backward pass leave what was saved for it as it is: otherwise backward(retain_graph=True) raises, and with
    a graph of another process from the cache on disk, a second pass computes something else.
    """
    from torch._functorch import config

    if hasattr(config, "donated_buffer"):
        config.donated_buffer = False


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


@cache
def keep_quiet() -> None:
    """Have torch's compiler not warn of what it leaves uncompiled in a program that has not asked it to compile."""
    if "TORCH_LOGS" in os.environ:
        return
    compilers = ("torch._dynamo", "torch._functorch", "torch._inductor")

    def is_heard(record: logging.LogRecord) -> bool:
        is_warning = record.levelno == logging.WARNING and record.name.startswith(compilers)
        return not is_warning or record.thread != Compiled.runs

    names = [name for name in logging.root.manager.loggerDict if name.startswith(compilers)]
    for handler in {handler for name in names for handler in logging.getLogger(name).handlers}:
        handler.addFilter(is_heard)


def graphs() -> int:
    """The number of graphs that torch has compiled in this process."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


class Compiled:
    """A function through torch.compile, anew once weights of a model are unfrozen: what torch 2.4 to 2.11, at least,
    compiled before gives these no gradients.
    """

    runs: int | None = None
    """The thread in which one of them runs."""

    def __init__(self, function: Any, model: Any, backend: Callable[..., Any], **given: Any) -> None:
        """`given` are further arguments of torch.compile."""
        self._function, self._model, self._backend, self._given = function, model, backend, given
        self._begin()

    def _begin(self) -> None:
        import torch

        self._graphs: int | None = None
        """The number of compiled graphs when frozen weights were last looked for."""
        self._frozen: list[Any] = []
        # torch counts how often it compiles by code, not by function.
        self._function.__code__ = self._function.__code__.replace()
        self._call = torch.compile(self._function, backend=self._backend, **self._given)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if self._frozen and any(one.requires_grad for one in self._frozen):
            self._begin()
        Compiled.runs = threading.get_ident()
        try:
            return self._call(*inputs, **named)
        finally:
            Compiled.runs = None
            if self._graphs != (now := graphs()):
                self._graphs = now
                self._frozen = [one for one in self._model.parameters() if not one.requires_grad]


def inductor_in_parts(
    graph: Any,
    inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
    goes_on: Callable[[], bool] = lambda: True,
) -> Callable[..., Any]:
    """Compile a graph with torch's default compiler, and have a backward pass make gradients as an uncompiled one does:
    torch makes zeros for weights behind outputs that the backward pass leaves out, with which AdamW decays them. Here
    they have None; hooks there would be called with it, so where there are or may be any, the graph runs uncompiled. So
    does it if `goes_on` says that nothing more is to be compiled.
    """
    from torch import fx
    from torch._dynamo import lookup_backend

    if not goes_on():
        return graph  # type: ignore[no-any-return]
    weights = tuple(graph.parameters())  # torch 2.4 leaves them within the graph
    changes = Changes(tuple(graph.buffers()))
    behind, used = _behind_outputs(graph, weights, inputs)
    apart = {one for some in behind.values() for one in some if not all(one in others for others in behind.values())}
    copied = fx.Graph()  # since compiling changes the other
    copied.output(copied.graph_copy(graph.graph, {}))
    uncompiled = fx.GraphModule(graph, copied) if apart else graph
    run: Callable[..., Any] = lookup_backend("inductor")(graph, inputs, config_patches=options)
    places: list[set[int]] = []
    """To which weights and inputs the gradients belong that the compiled graph makes."""

    def call(*inputs: Any) -> Any:
        given = (*weights, *inputs)
        versions = changes.before(inputs)
        if any(_may_have_hooks(given[index]) for index in apart):
            return uncompiled(*inputs)
        outputs = run(*inputs)
        ends = {index: end for index, one in enumerate(outputs) if (end := _end(one))}
        if ends:
            node, _ = next(iter(ends.values()))
            if not places:
                places.extend(_places(node, given))
            changes.check(versions, node)
            behind_ends = {number: behind.get(index, set()) for index, (_, number) in ends.items()}
            node.register_hook(partial(_as_uncompiled, behind_ends, places))
        computed = {index: one for index, one in enumerate(outputs) if getattr(one, "grad_fn", None) is not None}
        for index, one in computed.items() if len(computed) > 1 else ():
            if not any(one is other for other in given):
                one._backward_hooks = _Hooks(is_used=index in used)
                one.grad_fn._register_hook_dict(one)
        return outputs

    return call


class _Hooks(OrderedDict[int, Callable[..., Any]]):
    """The hooks on the gradient of one of several outputs of a compiled graph, called as those of an uncompiled one.

    Torch calls them with None where the backward pass leaves the output out. Of what the graph computes from the output
    for another one, which `is_used`, they see nothing; so the model's forward can put none there.
    """

    def __init__(self, *, is_used: bool) -> None:
        super().__init__()
        self._is_used = is_used

    def __setitem__(self, key: int, hook: Callable[..., Any]) -> None:
        if self._is_used and Compiled.runs:
            raise BackwardFailed("its forward puts a hook on an activation that it has used (--skip compile)")
        given = hook if self._is_used else wraps(hook)(lambda one: None if one is None else hook(one))
        super().__setitem__(key, given)


def _may_have_hooks(given: Any) -> bool:
    """Whether a tensor has hooks on its gradient, or may have some: on a computed tensor they cannot be seen."""
    return not given.is_leaf or bool(given._backward_hooks or given._post_accumulate_grad_hooks)


def _as_uncompiled(
    behind: dict[int, set[int]], places: list[set[int]], made: Any, given: Any
) -> tuple[Any, ...] | None:
    """The gradients that a compiled graph made, without those that come from none of the gradients given to it."""
    used = {number for number, one in enumerate(given) if one is not None}
    if used == behind.keys() or not used <= behind.keys():  # there are others where an input was written to
        return None
    needed = set().union(*(behind[number] for number in used))
    return tuple(one if not place or place & needed else None for one, place in zip(made, places, strict=True))


def _behind_outputs(
    graph: Any, weights: tuple[Any, ...], inputs: Sequence[Any]
) -> tuple[dict[int, set[int]], set[int]]:
    """To which weights and inputs of a graph, all counted in one row, a gradient of each output goes; and the outputs
    that others are computed from. Found in a run without values. Nothing for a graph with a single output.
    """
    import torch
    from torch._guards import detect_fake_mode
    from torch._subclasses import FakeTensor

    nodes = list(graph.graph.nodes)
    if len(nodes[-1].args[0]) < 2:
        return {}, set()
    traced = [node.meta.get("example_value") for node in nodes if node.op == "placeholder"]
    mode = next((one.fake_mode for one in traced if isinstance(one, FakeTensor)), detect_fake_mode(inputs))
    shapes = mode.shape_env
    unchanged = [shapes.suppress_guards(), shapes.ignore_fresh_unbacked_symbols()] if shapes else []
    with ExitStack() as within:
        for one in (mode, torch.enable_grad(), *unchanged):
            within.enter_context(one)
        leaves = [_leaf(one) for one in (*(mode.from_tensor(one, static_shapes=True) for one in weights), *traced)]
        given = [one.clone() if isinstance(one, torch.Tensor) and one.requires_grad else one for one in leaves]
        names = [name for name, _ in graph.named_parameters()]
        found = torch.func.functional_call(graph, dict(zip(names, given, strict=False)), tuple(given[len(names) :]))
    known, inputs_given = {id(one): index for index, one in enumerate(leaves)}, set(map(id, given))
    made = {index: one for index, one in enumerate(found) if isinstance(one, torch.Tensor)}
    nodes_of = {index: nodes_behind([one]) for index, one in made.items()}
    used = {index for index, one in made.items() if _is_in_others(one.grad_fn, index, nodes_of)}
    behind = {
        index: {known[id(leaf)] for leaf in _leaves_at(nodes_of[index]) if id(leaf) in known}
        for index, one in made.items()
        if id(one) not in inputs_given and id(one._base) not in inputs_given  # a graph does not make these
    }
    return behind, used


def _is_in_others(node: Any, index: int, nodes_of: dict[int, set[Any]]) -> bool:
    return any(node in nodes for other, nodes in nodes_of.items() if other != index)


def _leaf(one: Any) -> Any:
    import torch

    if not isinstance(one, torch.Tensor) or getattr(one, "item_memo", None) is not None:  # a number that is known
        return one
    return one.detach().clone().requires_grad_(one.requires_grad)


def _leaves_at(nodes: Iterable[Any]) -> list[Any]:
    return [one.variable for one in nodes if type(one).__name__ == "AccumulateGrad"]


def _end(output: Any) -> tuple[Any, int] | None:
    """The node of a compiled graph that an output comes from, and which of the node's outputs it is."""
    import torch

    if not isinstance(output, torch.Tensor):
        return None
    base = output._base if output._is_view() else output
    return (base.grad_fn, base.output_nr) if type(base.grad_fn).__name__ == "CompiledFunctionBackward" else None


def _places(node: Any, given: Iterable[Any]) -> list[set[int]]:
    """Which of the tensors that were given to a compiled graph its gradients belong to, in their order."""
    import torch

    known: dict[Any, set[int]] = {}
    for index, one in enumerate(given):
        if isinstance(one, torch.Tensor) and one.requires_grad:
            known.setdefault(id(one) if one.is_leaf else (one.grad_fn, one.output_nr), set()).add(index)
    following = ((one, number, type(one).__name__ == "AccumulateGrad") for one, number in node.next_functions)
    return [known.get(id(one.variable) if is_leaf else (one, number), set()) for one, number, is_leaf in following]
