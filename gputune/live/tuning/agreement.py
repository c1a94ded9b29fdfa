"""How far a model's outputs with some settings are from those without, on copies of the same inputs.

Each call of a model that is compared is made three times: twice with torch's defaults, which shows how far two such
calls are apart by themselves, and then with the settings, on the program's own inputs. Random states and buffers are
put back in between.

A mask's constant, or a few elements far larger than all others, would hide in a norm that the others are wrong. So
elements far beyond the typical ones of those that differ are compared by themselves.
"""

import copy
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ...knobs._outputs import tensors
from ..advice import Values
from ..installer import Installer
from ..orders import OutputsCompared
from ..root import Root
from ..states import States

MOST = 1 << 22
"""So many elements of an output are looked at, from its first row on: 4 million, which take 16 MB."""
LARGE = 100.0
"""An element so many times the median one stands apart."""
CLEAR = 4.0
"""A lead is clear from so many times the error on that a precision explains."""


def rows(tensor: Any) -> Any:
    """The first elements, in rows of the last dimension: floats in FP32, complex as pairs, integers as they are."""
    import torch

    tensor = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
    found = tensor.reshape(-1, tensor.shape[-1] if tensor.dim() and tensor.shape[-1] else 1)
    found = found[: max(1, MOST // found.shape[1])]
    return found.float() if found.is_floating_point() else found.clone()


def compared(one: Any, other: Any, explained: float) -> OutputsCompared:
    """How close an output is to one in FP32, as `rows` gives both. Its precision explains the error `explained`."""
    if not one.is_floating_point():
        return OutputsCompared(labels=one.numel(), same_labels=int((one == other).sum()))
    finite = bool((other.isfinite() | ~one.isfinite()).all())
    differing = (one != other) & one.isfinite() & other.isfinite()
    if not differing.any():
        return OutputsCompared(finite=finite)
    size = one.abs().double()
    typical = size[differing & (size > 0)]
    large = size > LARGE * typical.median() if len(typical) else size < 0
    error = (one.double() - other.double()).abs()
    usual, apart = one.isfinite() & other.isfinite() & ~large, differing & large
    worst = float(error[usual].norm() / size[usual].norm()) if (usual & differing).any() else 0.0
    if apart.any():
        worst = max(worst, float((error[apart] / size[apart]).max()))
    scale = size[~large & one.isfinite()].square().mean().sqrt()
    clear, agreeing = _leading(one, other, CLEAR * explained * scale)
    return OutputsCompared(error=worst, finite=finite, rows=clear, agreeing=agreeing)


def _leading(one: Any, other: Any, lead: Any) -> tuple[int, int]:
    """In how many rows the largest element leads by so much, and in how many of these it is the same one."""
    if one.shape[-1] < 2:
        return 0, 0
    first, second = one.topk(2, dim=-1).values.unbind(-1)
    clear = first - second > lead
    return int(clear.sum()), int((clear & (one.argmax(-1) == other.argmax(-1))).sum())


class Agreement:
    """The calls of all models between `start` and `stop`."""

    def __init__(self, installer: Installer, values: Values, explained: float) -> None:
        self._installer, self._values, self._explained = installer, values, explained
        self._busy = False
        self._found: dict[str, Any] = asdict(OutputsCompared())

    def start(self) -> None:
        for root in self._installer.roots:
            root.call.instead = self._of(root)
            root.claim()

    def stop(self) -> None:
        for root in self._installer.roots:
            root.call.instead = None
        self._installer.switch({})

    @property
    def found(self) -> OutputsCompared:
        """The comparison of all calls so far."""
        return OutputsCompared(**self._found)

    def _of(self, root: Root) -> Callable[[Any, Any], Any]:
        def compare(inputs: Any, named: Any) -> Any:
            call, outermost = root.call, not self._busy
            call.instead, self._busy = None, True
            try:
                plain = self._plain(root, inputs, named) if outermost else None
                if outermost:
                    self._installer.switch(self._values)
                output = call(*inputs, **named)
            finally:
                call.instead = compare
                self._busy = not outermost
            if plain is not None:
                self._attempt(lambda: self._note(*plain, [rows(one) for one in tensors(output)]))
            return output

        return compare

    def _plain(self, root: Root, inputs: Any, named: Any) -> tuple[Any, Any] | None:
        """The first rows of what two calls with torch's defaults return; None where they cannot be made."""
        outputs: list[Any] = []

        def call_twice() -> None:
            states = States(lambda: root.model, root.device)
            before = states.before_call(())
            self._installer.switch({})
            for _ in range(2):
                own_inputs, own_named = copy.deepcopy((inputs, named))
                outputs.append([rows(one) for one in tensors(root.call(*own_inputs, **own_named))])
                if why := states.put_back(before):
                    raise ValueError(f"its call cannot be repeated: {why}")

        self._attempt(call_twice)
        return (outputs[0], outputs[1]) if len(outputs) == 2 else None

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._found["failed"] = " ".join(f"{type(error).__name__}: {error}".split())[:200]

    def _note(self, plain: list[Any], again: list[Any], others: list[Any]) -> None:
        found = self._found
        if _shapes(plain) != _shapes(again):
            raise ValueError("two calls with the same inputs return outputs of other shapes")
        if _shapes(plain) != _shapes(others):
            found["alike"] = False
            return
        for one, second, other in zip(plain, again, others, strict=True):
            close = compared(one, other, self._explained)
            found["error"] = max(found["error"], close.error)
            found["finite"] &= close.finite
            found["spread"] = max(found["spread"], compared(one, second, self._explained).error)
            for name in ("rows", "agreeing", "labels", "same_labels"):
                found[name] += getattr(close, name)
        found["calls"] += bool(plain)


def _shapes(outputs: list[Any]) -> list[Any]:
    return [one.shape for one in outputs]
