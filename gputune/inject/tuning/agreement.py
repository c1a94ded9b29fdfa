"""How far a model's outputs with some settings are from those without, on copies of the same inputs.

Each call of a model that is compared is made three times: twice with torch's defaults, which shows how far two such
calls are apart by themselves, and then with the settings, on the program's own inputs. Random states and buffers are
put back in between.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..outputs import tensors
from ..rewind import rewinder

if TYPE_CHECKING:
    from ..root import Root
    from .arms import Arms, Values

MOST = 1 << 22
"""So many elements of an output are looked at, from its first row on: 4 million, which take 16 MB."""
CLEAR = 4.0
"""FP32's lead is clear from so many times the error on that a precision explains."""


class Agreement:
    """The calls of all models between `start` and `stop`. `explained` is the relative error that the precision of the
    settings explains.
    """

    def __init__(self, arms: Arms, values: Values, explained: float) -> None:
        self._arms, self._values, self._explained = arms, values, explained
        self._found: dict[str, Any] = {
            "calls": 0, "error": 0.0, "spread": 0.0, "rows": 0, "agreeing": 0, "finite": True, "failed": "",
        }  # fmt: skip

    def start(self) -> None:
        for root in self._arms.roots:
            root.call.instead = self._of(root)

    def stop(self) -> None:
        for root in self._arms.roots:
            root.call.instead = None
        self._arms.switch({})

    @property
    def plain(self) -> dict[str, Any]:
        """For JSON: how many `calls` had outputs that could be compared; the largest relative `error` of any output,
        and the largest `spread` of two calls without the settings; in how many `rows` FP32's largest element is clearly
        so, and how many of these are `agreeing`; whether all numbers are `finite` that are without; and what `failed`.
        """
        return self._found

    def _of(self, root: Root) -> Callable[[Any, Any], Any]:
        def compared(inputs: Any, named: Any) -> Any:
            call, plain = root.call, None
            call.instead = None
            try:
                plain = self._plain(root, inputs, named)
                self._arms.switch(self._values)
                output = call(*inputs, **named)
            finally:
                call.instead = compared
            if plain is not None:
                self._attempt(lambda: self._note(*plain, output))
            return output

        return compared

    def _plain(self, root: Root, inputs: Any, named: Any) -> tuple[Any, Any] | None:
        """The outputs of two calls with torch's defaults."""
        outputs: list[Any] = []

        def call_twice() -> None:
            back = rewinder(root.model, root.device)
            self._arms.switch({})
            for _ in range(2):
                own_inputs, own_named = copy.deepcopy((inputs, named))
                outputs.append(root.call(*own_inputs, **own_named))
                back()

        self._attempt(call_twice)
        return (outputs[0], outputs[1]) if len(outputs) == 2 else None

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._found["failed"] = " ".join(f"{type(error).__name__}: {error}".split())[:200]

    def _note(self, plain: Any, again: Any, output: Any) -> None:
        outputs = list(zip(tensors(plain), tensors(again), tensors(output), strict=True))
        for one, second, other in outputs:
            if not one.shape == second.shape == other.shape:
                raise ValueError(f"an output of the shape {tuple(one.shape)} has another one: {tuple(other.shape)}")
            if one.numel():
                self._compare(_rows(one), _rows(second), _rows(other))
        self._found["calls"] += any(one.numel() for one, _, _ in outputs)

    def _compare(self, one: Any, second: Any, other: Any) -> None:
        found = self._found
        if one.is_floating_point():
            found["error"] = max(found["error"], _distance(one, other))
            found["spread"] = max(found["spread"], _distance(one, second))
            found["finite"] &= bool((other.isfinite() | ~one.isfinite()).all())
        for name, count in zip(("rows", "agreeing"), self._agreeing(one, other), strict=True):
            found[name] += count

    def _agreeing(self, one: Any, other: Any) -> Iterator[int]:
        """In how many rows the largest element is clear, and in how many of these it is the same one. Of whole numbers,
        labels as a rule, each is a row.
        """
        if not one.is_floating_point():
            yield one.numel()
            yield int((one == other).sum())
            return
        if one.shape[-1] < 2:
            yield from (0, 0)
            return
        first, second = one.topk(2, dim=-1).values.unbind(-1)
        size = one.square().mean(-1).sqrt()
        clear = first - second > CLEAR * self._explained * size
        yield int(clear.sum())
        yield int((clear & (one.argmax(-1) == other.argmax(-1))).sum())


def _rows(tensor: Any) -> Any:
    """The first elements in rows of the last dimension, floating-point numbers in FP32."""
    rows = tensor.detach().reshape(-1, tensor.shape[-1] if tensor.dim() else 1)
    rows = rows[: max(1, MOST // max(1, rows.shape[1]))]
    return rows.float() if rows.is_floating_point() else rows


def _distance(one: Any, other: Any) -> float:
    """The norm of the difference to that of the first, where both are finite."""
    both = one.isfinite() & other.isfinite()
    size = float(one.where(both, 0).norm())
    return float((one - other).where(both, 0).norm()) / size if size else 0.0
