"""What a model in mixed precision keeps of its calls is in FP32, wherever it keeps it."""

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from gputune.knobs._outputs import tensors
from gputune.live.call import Suspect, call_of

HALF, FULL = torch.bfloat16, torch.float32


class Keeps(nn.Module):
    def __init__(self, keep: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layer, self.keep = nn.Linear(2, 2), keep
        self.register_buffer("center", torch.zeros(2))
        self.own = torch.zeros(2, dtype=HALF)
        self.list, self.table, self.object = deque([torch.zeros(2)], maxlen=2), {"last": None}, SimpleNamespace(x=None)

    def forward(self, x: Any) -> Any:
        out = self.layer(x)
        assert out.dtype == HALF
        self.keep(self, out)
        return out


def mixed(model: Any) -> Any:
    call = call_of(model, "cpu")
    call.dtype = HALF
    call.suspect(Suspect(name="amp_dtype", turn_off=list, turn_on=list, failed=lambda *_: None))
    return model


KEEPS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "an attribute": (lambda own, out: setattr(own, "last", out), lambda own: own.last),
    "a state in pairs": (lambda own, out: setattr(own, "hidden", (out, [out])), lambda own: own.hidden),
    "a buffer": (lambda own, out: setattr(own, "center", out.detach().mean(0)), lambda own: own.center),
    "an attribute of a part": (lambda own, out: setattr(own.layer, "scores", out), lambda own: own.layer.scores),
    "what grows": (lambda own, out: own.list.append(out), lambda own: list(own.list)),
    "a dictionary": (lambda own, out: own.table.update(last=out), lambda own: own.table),
    "an object": (lambda own, out: setattr(own.object, "x", out), lambda own: vars(own.object)),
}


@pytest.mark.parametrize(("keep", "kept"), KEEPS.values(), ids=KEEPS)
def test_it_is_in_fp32_after_each_call_and_carries_gradients(keep: Any, kept: Any) -> None:
    model = mixed(Keeps(keep))
    for _ in range(4):
        model(torch.ones(3, 2))
        found = list(tensors(kept(model)))
        assert {one.dtype for one in found} == {FULL}
        assert any(one.requires_grad for one in found) is not ("center" in keep.__code__.co_consts)


def test_what_the_program_put_there_in_half_precision_stays() -> None:
    model = mixed(Keeps(lambda own, out: setattr(own, "last", out)))
    model(torch.ones(3, 2))
    assert (model.own.dtype, model.last.dtype) == (HALF, FULL)
