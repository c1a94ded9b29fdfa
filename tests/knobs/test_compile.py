"""torch.compile, put into a model and taken out; it is replaced by what calls the model plainly."""

from typing import Any

import pytest
import torch
from hands_on import mlp, rooted
from torch import nn

from gputune.knobs import amp_dtype
from gputune.knobs import compile as knob
from gputune.live.call import call_of

X = torch.ones(2, 4)


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def compile_(function: Any) -> Any:
        return lambda *inputs, **named: (seen.append(function), function(*inputs, **named))[1]

    monkeypatch.setattr(torch, "compile", compile_)
    return seen


def turn_on(model: Any, **more: Any) -> Any:
    root = rooted(model, **more)
    assert knob.obstacle(root, True) is None
    assert knob.turn_on(root, True) is True
    return root


@pytest.mark.slow
class TestPutIn:
    def test_calls_with_gradients_run_compiled(self, calls: list[Any]) -> None:
        model = mlp()
        root = turn_on(model)
        model(X)
        assert len(calls) == 1
        with torch.no_grad():
            model(X)
        assert len(calls) == 1
        knob.turn_off(root)
        model(X)
        assert len(calls) == 1

    def test_the_model_inside_ddp_is_compiled(self, calls: list[Any]) -> None:
        model = mlp()
        wrap = type("DistributedDataParallel", (nn.Sequential,), {})()
        wrap.module = model
        root = turn_on(wrap)
        assert call_of(wrap, "cpu").compiled is None
        model(X)
        assert len(calls) == 1
        knob.turn_off(root)
        assert call_of(model, "cpu").compiled is None

    @pytest.mark.parametrize("mixed", [False, True])
    def test_outputs_are_in_fp32_where_mixed_precision_was_turn_on_and_else_in_the_models_own_dtype(
        self, mixed: bool
    ) -> None:
        class Halves(nn.Linear):
            def forward(self, x: Any) -> Any:
                return super().forward(x).bfloat16()

        model = Halves(4, 4)
        root = rooted(model)
        if mixed:
            amp_dtype.turn_on(root, "bfloat16")
        knob.turn_on(root, True)
        compiled = root.call.compiled
        assert compiled is not None
        assert compiled(X).dtype == (torch.float32 if mixed else torch.bfloat16)

    def test_where_compiling_fails_the_model_runs_without_it_and_the_reason_is_told(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*inputs: Any) -> Any:
            raise torch._dynamo.exc.Unsupported("no C compiler\nand more")

        monkeypatch.setattr(torch, "compile", lambda function: fail)
        model, told = mlp(), []
        turn_on(model, failed=lambda name, why: told.append((name, str(why))))
        assert torch.equal(model(X), model._call_impl(X))
        model(X)
        assert told == [("compile", "torch.compile failed: no C compiler")]
