"""Compile the model: `torch.compile`, which fuses its operations into fewer kernels at the price of compiling first.

It pays where many small operations wait for memory or for Python, and costs seconds to minutes at the first step. When
a size changes for the first time, torch compiles once more, for any size. It needs Python's headers, for a GPU also a C
compiler and Triton, and for the CPU a C++ compiler.

Source: PyTorch, "Introduction to torch.compile".
"""

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..resources.printable import printable
from . import Numerics, Obstacle, Phase, Root, Stage, Value
from ._backward import BackwardFailed
from ._called import PLACE, called
from ._compiler import (
    Compiled,
    graphs,
    inductor_in_parts,
    keep_alpha,
    keep_buffers,
    keep_quiet,
    seed_apart,
    tell_caches_apart,
)
from ._signals import passed_a_handler

VALUE = bool
DEFAULT = False
PHASE: Phase = "code"
USE = "model = tuning.prepare(model)"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
STAGE: Stage = "compile"
CANDIDATE = True
SPARES_HOST = True
IN_CALLS = True
AS_WRITTEN = ("skip_nnmodule_hook_guards", "rewrite_assert_with_torch_assert")
"""Options with which torch traces faster, but otherwise than the code is written: it forgets hooks that a program adds
later, and raises RuntimeError for an assert on a tensor. Both are off while a model is compiled, here and in what the
program compiles itself."""
CHANGES = "draws from Python's or NumPy's random, or changes a float or a deque"
FAULTS = r"dtype|scalar ?type|stride|contiguous|layout|compil|inductor|triton|cuda graph"


def obstacle(root: Root, value: Value) -> Obstacle | None:
    import torch

    if any(_is_compiled(module) for module in root.model.modules()):
        return Obstacle("the program compiles it itself", users=True)
    reasons = {
        f"the forward of {root.name} was replaced": isinstance(root.inner, torch.fx.GraphModule)
        or "forward" in vars(root.inner),
        # With torch 2.11 a graph attention network in bfloat16 ends the process at an odd address, by hand as well.
        "it adds to places (scatter_add), which compiled code does wrongly on a GPU": root.seen.scatters
        and root.device == "cuda",
        "it uses selective checkpointing": "selective checkpointing" in root.features,
        "it is called under hooks on what is saved for backward, as of checkpointing": root.seen.hooked,
        f"its forward {CHANGES}, of which torch.compile makes wrong numbers": root.seen.changes_numbers,
        "the program differentiates gradients (create_graph), which torch.compile does not support": (
            "double backward" in root.features
        ),
        "the program runs backward passes through its outputs one by one": "backward by parts" in root.features,
    }
    why = next((why for why, is_so in reasons.items() if is_so), None)
    return Obstacle(why) if why else None


def turn_on(root: Root, value: Value) -> Value:
    """Compile the model inside DistributedDataParallel: torch then splits it at the wrap's buckets."""
    from torch._functorch import config

    if hasattr(config, "backward_pass_autocast"):
        # Otherwise the backward pass would be traced under the call's autocast.
        config.backward_pass_autocast = "off"  # noqa: S105 - no password
    # As of TF32 that is off, or of its own deprecated parts.
    warnings.filterwarnings("ignore", module=r"torch\._(dynamo|functorch|inductor)\.")
    tell_caches_apart(root.call.dtype or root.seen.autocast)
    call = root.inner_call
    if call.dtype not in root.compiled:
        make = partial(
            compiled_call,
            root.inner,
            in_float32=call.dtype is not None,  # of this model's own call, not of the wrap's
            rehearse=root.rehearse,
            # The order of a DataLoader's samples comes from the random numbers of the CPU.
            options={"fallback_random": True} if root.device == "cpu" else None,
        )
        root.compiled[call.dtype] = root.watch_compiling(make)
    call.compiled = root.compiled[call.dtype]
    _trace_as_written(id(call), True)
    return True


def turn_off(root: Root) -> None:
    root.inner_call.compiled = None
    _trace_as_written(id(root.inner_call), False)


_traced: set[int] = set()
_before: dict[str, Any] = {}


def _trace_as_written(call: int, on: bool) -> None:
    """Have torch trace `AS_WRITTEN` from when the first call is compiled until none is."""
    from torch._dynamo import config

    if on and not _traced:
        _before.update({name: getattr(config, name) for name in AS_WRITTEN if hasattr(config, name)})
        for name in _before:
            setattr(config, name, False)
    _traced.add(call) if on else _traced.discard(call)
    if not _traced:
        for name in tuple(_before):
            setattr(config, name, _before.pop(name))


def _is_compiled(module: Any) -> bool:
    call = module._compiled_call_impl
    return getattr(call, "users", call) is not None or type(module).__name__ == "OptimizedModule"


def compiled_call(
    model: Any,
    *,
    in_float32: bool = False,
    rehearse: Callable[[Any, Any], None] | None = None,
    goes_on: Callable[[], bool] = lambda: True,
    **given: Any,
) -> Callable[..., Any]:
    """The call of a torch.nn.Module through torch.compile. With `in_float32` an output that is a tensor is converted as
    part of the graph, where it costs less than on its own. `rehearse` is called with the inputs and the output of the
    first call, and of each that compiles something, and raises BackwardFailed if its backward pass would fail. A graph
    is left uncompiled if `goes_on` says so. `given` are further arguments of torch.compile.

    `torch.compile(model)` would wrap the model and thereby prefix every name in its state_dict; `model.compile()`
    compiles nothing where the model itself is one of torch's own modules, such as a Sequential.
    """
    import torch

    rehearsed: int | None = None  # the number of graphs by then

    def forward(*inputs: Any, **named: Any) -> Any:
        output = model._call_impl(*inputs, **named)
        if in_float32 and isinstance(output, torch.Tensor) and output.dtype == torch.bfloat16:
            return output.to(torch.float32)
        return output

    keep_alpha()
    keep_buffers()
    seed_apart()
    keep_quiet()
    tell_caches_apart()
    compiled = Compiled(forward, model, partial(inductor_in_parts, goes_on=goes_on), **given)

    def call(*inputs: Any, **named: Any) -> Any:
        nonlocal rehearsed
        handled = sys.exception()
        try:
            output = compiled(*inputs, **named)
            if rehearse and rehearsed != (now := graphs()):
                rehearse((inputs, named), output)
                rehearsed = now
            return output
        except Exception as error:
            signal = raised_by_a_handler(error, handled) if is_the_compilers(error) else None
            if signal is None:
                raise
        # Out of the except clause, so that it shows no exception of torch's before it.
        raise signal

    return call


ADDED = re.compile(r"\n+((from user code:\n|Set TORCHDYNAMO_VERBOSE).*)?\Z", re.DOTALL)
"""The advice that torch appends to the text of an exception from its compiler."""


def is_the_compilers(error: Exception) -> bool:
    """Whether torch raised it because it could not compile something."""
    dynamo: Any = sys.modules.get("torch._dynamo.exc")
    return isinstance(error, (BackwardFailed, *([dynamo.TorchDynamoException] if dynamo else [])))


def raised_by_a_handler(error: Exception, handled: BaseException | None) -> BaseException | None:
    """The exception of a handler of signals, as for a time limit, that torch's compiler wrapped in one of its own: the
    handler interrupts whatever runs, and what it raises is meant for the program. `handled` is the exception that was
    being handled before the call.
    """
    for one in _behind(error, handled):
        if passed_a_handler(one) and not (isinstance(one, Exception) and is_the_compilers(one)):
            if hasattr(one, "innermost_user_frame_summary"):  # torch has appended to it
                text = ADDED.sub("", str(one.args[0]))
                one.args = (text, *one.args[1:]) if text or one.args[1:] else ()
            return one
    return None


def _behind(error: BaseException, handled: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that led to it, from the outside in, without those before `handled`."""
    seen, waiting = {id(handled)}, list[BaseException | None]([error])
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__context__, one.__cause__, getattr(one, "inner_exception", None)]


def compile_in_place(model: Any, failed: Callable[[str], None]) -> None:
    """Compile a torch.nn.Module's calls. If that fails, warn, call `failed` with the reason, and run uncompiled."""
    import torch

    compiled = compiled_call(model)

    def call(*inputs: Any, **named: Any) -> Any:
        other = None if torch.compiler.is_dynamo_compiling() else called()
        if other is not None and other is not model:  # a copy of all attributes
            return other._call_impl(*inputs, **named)
        if vars(model).get(PLACE) is not call:
            return model._call_impl(*inputs, **named)
        try:
            return compiled(*inputs, **named)
        except Exception as error:
            if not is_the_compilers(error):
                raise
            why = str(error).strip().split("\n")[0][:200]
        vars(model)[PLACE] = None
        failed(why)
        warnings.warn(printable(f"gputune: torch.compile failed, and the model runs without it: {why}"), stacklevel=3)
        return model._call_impl(*inputs, **named)

    vars(model)[PLACE] = call
