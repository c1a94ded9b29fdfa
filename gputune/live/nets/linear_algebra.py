"""A program that factorises matrices in its loss keeps torch's FP32 matmuls, unless it asks for TF32 itself.

A Cholesky factor of a kernel matrix, a determinant or a solution multiplies the errors of what it is computed from by
the matrix's condition number: an exact Gaussian process ended elsewhere with kernels that were computed in TF32. Norms,
initialisation and optimizers leave no such operation in the graph of a loss.
"""

import functools
import re
from collections.abc import Collection, Sequence
from typing import Any

from ...knobs._signals import is_for_the_program
from .. import flags, say
from ..patches import Undo, replaced

PASSES = 10
"""So many backward passes are looked at: a later loss may be another one, and a pass of 1000 nodes costs 1 ms."""
SETTING = "matmul_precision"
NODES = 100_000
"""The nodes that are looked at in all these passes."""
_FACTORISING = (
    r"Linalg(Cholesky|Lu|Qr|Svd|Eig|Inv|Pinv|Solve|Lstsq|Det|Slogdet)|(Cholesky\w*|TriangularSolve)Backward\d"
)
_watch: list["_Watch"] = []
"""The one watch of this process, while there is one."""


def factorising(nodes: Collection[Any]) -> str | None:
    """The first name of a node of a graph that factorises or inverts a matrix, or solves a system; None without."""
    return min((node.name().partition("Backward")[0] for node in nodes if _factorises(node)), default=None)


def is_behind(outputs: Sequence[Any]) -> bool:
    """Whether one of these outputs, of which gradients are asked for, was computed by such a node."""
    return factorising(_nodes_behind(_tensors(outputs))) is not None


def watch() -> None:
    """Look at the first backward passes, if gputune has set TF32, and set it back if a loss factorises matrices."""
    if not _watch and flags.is_ours(SETTING, "tf32"):
        _watch.append(_Watch())


def _leave() -> None:
    """Look at no more backward passes."""
    while _watch:
        _watch.pop().undo()


class _Watch:
    def __init__(self) -> None:
        self.passes, self.nodes = PASSES, NODES
        self.undo = _gradients_asked(self)

    def look(self, outputs: Sequence[Any]) -> None:
        import torch

        if torch.compiler.is_compiling():
            return
        self.passes -= 1
        nodes = _nodes_behind([one for one in _tensors(outputs) if _matters(torch, one)])
        self.nodes -= len(nodes)
        if found := factorising(nodes):
            _set_back(found)
        if found or self.passes <= 0 or self.nodes <= 0:
            _leave()


def _tensors(outputs: Sequence[Any]) -> list[Any]:
    """Without the edges of a graph that newer torches take as well."""
    return [one for one in outputs if hasattr(one, "grad_fn")]


def _nodes_behind(outputs: Collection[Any]) -> set[Any]:
    from ...knobs._outputs import nodes_behind  # which no program needs at its start

    return nodes_behind(outputs)


def _factorises(node: Any) -> bool:
    home = getattr(getattr(node, "_forward_cls", None), "__module__", None) or ""
    return bool(re.match(_FACTORISING, node.name())) or home.partition(".")[0] == "linear_operator"  # GPyTorch's


def _matters(torch: Any, loss: Any) -> bool:
    """Whether TF32 can have reached a loss: what a program that uses a GPU computes on the CPU is not meant."""
    return bool(loss.is_cuda) or not torch.cuda.is_initialized()


def _set_back(operation: str) -> None:
    why = f"the loss factorises matrices ({operation}), and TF32 would change the result"
    if flags.set_back(SETTING, why):
        more = 'To have TF32 all the same, call torch.set_float32_matmul_precision("high") in the script.'
        say(f"{SETTING} tf32 was turned off: {why}. {more}")


def _gradients_asked(watching: _Watch) -> Undo:
    """Wrap the step that `backward` and `torch.autograd.grad` share, if this torch has it."""
    import torch

    holder: Any = getattr(torch, "autograd", None)
    original = getattr(holder, "_make_grads", None)
    if original is None:
        return lambda: None

    @functools.wraps(original)
    def _make_grads(outputs: Any, *given: Any, **named: Any) -> Any:
        try:
            watching.look(outputs)
        except Exception as error:
            _leave()
            if is_for_the_program(error):
                raise
        return original(outputs, *given, **named)

    return replaced(holder, "_make_grads", _make_grads)
