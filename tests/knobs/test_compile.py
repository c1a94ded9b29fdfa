"""torch.compile, put into a model and taken out; it is replaced by what calls the model plainly."""

import logging
import threading
import warnings
from typing import Any

import pytest
import torch
from hands_on import mlp, rooted
from torch import nn

from gputune.knobs import amp_dtype
from gputune.knobs import compile as knob
from gputune.knobs._compiler import Compiled
from gputune.live.call import call_of
from gputune.live.installer import Installer

X = torch.ones(2, 4)
COMPILE = torch.compile


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def compile_(function: Any, **_: Any) -> Any:
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

    def test_it_is_compiled_anew_once_weights_are_unfrozen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[Any] = []
        monkeypatch.setattr(torch, "compile", lambda function, **_: (made.append(function.__code__), function)[1])
        model = mlp()
        model[0].requires_grad_(False)
        turn_on(model)
        counts = []
        for trains in (False, False, True, True, False):
            model[0].requires_grad_(trains)
            model(X).sum().backward()
            counts.append(len(made))
        assert counts == [1, 1, 2, 2, 2]
        assert made[0] is not made[1]

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

        monkeypatch.setattr(torch, "compile", lambda function, **_: fail)
        model, told = mlp(), []
        root = rooted(model, failed=lambda name, why: told.append((name, str(why))))
        installer = Installer([root], guarded=True)
        assert installer.obstacles({"compile": True}) == {}
        installer.switch({"compile": True})
        assert torch.equal(model(X), model._call_impl(X))
        model(X)
        assert told == [("compile", "its call failed with it: Unsupported: no C compiler and more")]


class Checks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        assert x.isfinite().all(), "bad batch"
        return self.layer(x)


@pytest.mark.slow
class TestTracedAsWritten:
    @pytest.fixture(autouse=True)
    def eager(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch, "compile", lambda function, **_: COMPILE(function, backend="eager"))

    def test_a_hook_that_is_added_later_is_called(self) -> None:
        model, called = mlp(), []
        root = turn_on(model)
        model(X)
        model[0].register_forward_hook(lambda *_: called.append("hook"))
        model(X)
        assert called == ["hook"]
        knob.turn_off(root)

    def test_an_assert_on_a_tensor_raises_what_it_says(self) -> None:
        model = Checks()
        root = turn_on(model)
        model(X)
        with pytest.raises(AssertionError, match="bad batch"):
            model(X / 0 * 0)
        knob.turn_off(root)

    def test_torchs_own_configuration_is_back_once_no_model_is_compiled(self) -> None:
        config: Any = torch._dynamo.config
        before = {name: getattr(config, name) for name in knob.AS_WRITTEN}
        roots = [turn_on(mlp()), turn_on(mlp())]
        for root in roots:
            assert not any(getattr(config, name) for name in knob.AS_WRITTEN)
            knob.turn_off(root)
        assert {name: getattr(config, name) for name in knob.AS_WRITTEN} == before


@pytest.mark.slow
def test_dropout_draws_the_random_numbers_that_it_draws_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", COMPILE)
    model, drawn = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.GELU(), nn.Dropout(0.3)), []
    for compiled in (False, True):
        root = turn_on(model) if compiled else None
        torch.manual_seed(0)
        model(X)
        drawn.append(torch.rand(1).item())
    assert root
    knob.turn_off(root)
    assert drawn[0] == drawn[1]


@pytest.mark.slow
def test_a_sum_with_a_multiple_of_a_product_of_matrices_is_compiled_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", COMPILE)

    class Average(nn.Module):
        def forward(self, sums: Any, x: Any) -> Any:
            return sums.mul(0.9).add_(x.T @ x, alpha=0.1), torch.add(x @ x, x, alpha=-1), x.add(x)

    inputs = torch.eye(4), torch.ones(4, 4)
    compiled = knob.compiled_call(Average())(*inputs)
    assert all(map(torch.allclose, compiled, Average()(*inputs)))


@pytest.mark.slow
def test_dropout_of_parts_that_are_checkpointed_on_a_gpu_is_not_seeded_from_the_cpus_random_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As torch seeds it when a graph first runs; without a GPU its generator is another one."""
    import torch._functorch.aot_autograd
    from torch._functorch._aot_autograd import runtime_wrappers, utils

    monkeypatch.setattr(utils, "get_default_generator", lambda device: torch.Generator("cpu"))
    generators: list[Any] = []

    class Checkpointed(nn.Module):
        def forward(self, x: Any) -> Any:
            runtime_wrappers.initialize_rng_states(2, 0, generators, [], device=torch.device("cpu"))
            return x

    before, call = torch.get_rng_state(), knob.compiled_call(Checkpointed())
    call(X)
    call(X)
    assert torch.equal(torch.get_rng_state(), before)
    assert len({one.initial_seed() for one in generators}) == 4
    Checkpointed()(X)  # the program's own
    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_what_the_compiler_warns_of_is_not_the_programs(recwarn: pytest.WarningsRecorder) -> None:
    turn_on(mlp())
    for module in ("torch._inductor.compile_fx", "torch._dynamo.eval_frame"):
        warnings.warn_explicit("of its own", UserWarning, "f.py", 1, module=module)
    warnings.warn_explicit("the program's", UserWarning, "f.py", 2, module="torch.optim")
    assert [str(one.message) for one in recwarn] == ["the program's"]


@pytest.mark.slow
def test_nor_is_what_it_logs_within_a_compiled_call(monkeypatch: pytest.MonkeyPatch) -> None:
    logged, (handler, *_) = list[str](), logging.getLogger("torch._dynamo").handlers
    monkeypatch.setattr(handler, "emit", lambda record: logged.append(record.getMessage()))
    monkeypatch.delenv("TORCH_LOGS", raising=False)
    knob.compiled_call(mlp())
    logger, other = logging.getLogger("torch._dynamo.convert_frame"), logging.getLogger("program")
    monkeypatch.setattr(other, "handlers", [handler])
    for runs in (threading.get_ident(), None):
        monkeypatch.setattr(Compiled, "runs", runs)
        logger.warning("hit the limit")
        logger.error("failed")
        other.warning("the program's")
    assert logged == ["failed", "the program's", "hit the limit", "failed", "the program's"]
