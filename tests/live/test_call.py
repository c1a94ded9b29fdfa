"""A model's call with something put into it: what changes, what is taken out again, and what is never saved."""

import copy
import pickle
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from hands_on import rooted
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from gputune.knobs._called import PLACE
from gputune.live.call import Call, call_of
from gputune.live.installer import Installer
from gputune.live.suspects import Suspect


def wrong_dtype() -> Any:
    """What torch's operators do when a program does not expect half precision."""
    return torch.zeros(2) @ torch.zeros(2, dtype=HALF)


class Net(nn.Module):
    """Notes the dtype that its layer computes in, and calls what is in `then` once it has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.dtypes: list[Any] = []
        self.then: Callable[[], Any] = list

    def forward(self, x: Any) -> Any:
        out = self.layer(x)
        self.dtypes.append(out.dtype)
        self.then()
        return out


class Signal(RuntimeError):
    """The program's own."""


class SavesAll(Net):
    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


X = torch.ones(2, 4)
HALF, FULL = torch.bfloat16, torch.float32


def mixed(model: Any) -> Call:
    call = call_of(model, "cpu")
    call.dtype = HALF
    return call


class TestMixedPrecision:
    def test_the_model_computes_in_it_and_its_output_is_in_fp32(self) -> None:
        model = Net()
        mixed(model)
        assert model(X).dtype == FULL
        assert model.dtypes == [HALF]

    def test_without_gradients_the_model_is_as_it_was(self) -> None:
        model = Net()
        mixed(model)
        with torch.no_grad():
            model(X)
        with torch.inference_mode():
            model(X)
        assert model.dtypes == [FULL, FULL]

    @pytest.mark.parametrize("gradients", [True, False])
    def test_outputs_have_the_usual_layout_with_gradients_and_without(self, gradients: bool) -> None:
        model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        call_of(model, "cpu").channels_last = True
        with torch.set_grad_enabled(gradients):
            assert model(torch.ones(2, 3, 8, 8)).view(2, -1).shape == (2, 144)

    @pytest.mark.parametrize("gradients", [True, False])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_outputs_of_inputs_in_channels_last_keep_it(self, channels: int, gradients: bool) -> None:
        model = nn.Conv2d(channels, 4, 3).to(memory_format=torch.channels_last)
        call_of(model, "cpu").channels_last = True
        with torch.set_grad_enabled(gradients):
            output = model(torch.ones(2, channels, 8, 8).to(memory_format=torch.channels_last))
        assert output.permute(0, 2, 3, 1).view(-1, 4).shape == (72, 4)

    @pytest.mark.parametrize(("channels", "size"), [(1, 8), (4, 3)])
    def test_outputs_that_are_both_layouts_at_once_do_not_ask_for_channels_last(self, channels: int, size: int) -> None:
        model = nn.Conv2d(3, channels, 3).to(memory_format=torch.channels_last)
        call_of(model, "cpu").channels_last = True
        output = model(torch.ones(2, 3, size, size))
        assert output.stride() == torch.empty(output.shape).stride()

    @pytest.mark.parametrize("channels", [1, 4])
    def test_outputs_put_together_have_the_usual_layout_too(self, channels: int) -> None:
        class Frames(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Conv2d(3, channels, 3).to(memory_format=torch.channels_last)

            def forward(self, frames: Any) -> Any:
                return torch.stack([self.layer(one) for one in frames], 1)

        model = Frames()
        call_of(model, "cpu").channels_last = True
        assert model(torch.ones(5, 2, 3, 8, 8)).is_contiguous()

    @pytest.mark.parametrize("shape", [(2, 3, 1, 1), (1, 1, 8, 8), (2, 1, 8, 1)])
    def test_inputs_that_are_both_layouts_at_once_ask_for_none(self, shape: tuple[int, ...]) -> None:
        model = nn.ConvTranspose2d(shape[1], 4, 3).to(memory_format=torch.channels_last)
        call_of(model, "cpu").channels_last = True
        assert model(torch.ones(shape)).is_contiguous()

    def test_below_the_programs_own_autocast_nothing_is_added_and_nothing_restored(self) -> None:
        model = Net()
        mixed(model)
        with torch.autocast("cpu", dtype=torch.float16):
            assert model(X).dtype == torch.float16
        assert model.dtypes == [torch.float16]

    @pytest.mark.parametrize("dtype", [torch.float16, HALF])
    def test_inputs_in_half_precision_are_refused_as_the_model_refuses_them(self, dtype: Any) -> None:
        model = Net()
        mixed(model)
        with pytest.raises(RuntimeError, match="dtype"):
            model(X.to(dtype))
        assert model(X).dtype == FULL

    @pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.jacrev, torch.func.jacfwd])
    def test_within_a_transform_of_torch_func_the_model_is_as_it_was(self, transform: Any) -> None:
        model = Net()
        mixed(model).compiled = lambda x: None
        transform(model)(X)
        assert model.dtypes == [FULL]

    def test_a_trace_of_its_operators_is_of_the_model_as_it_was(self) -> None:
        model = Net()
        expected = make_fx(model)(X).code
        mixed(model).compiled = lambda x: None
        assert make_fx(model)(X).code == expected

    def test_fake_tensors_are_computed_by_the_model_as_it_was(self) -> None:
        model = Net()
        mixed(model).compiled = lambda x: None
        with FakeTensorMode(allow_non_fake_inputs=True):
            model(X)
        assert model.dtypes == [FULL]

    def test_within_forward_mode_differentiation_the_model_is_as_it_was(self) -> None:
        model = Net()
        mixed(model).compiled = lambda x: None
        with forward_ad.dual_level():
            assert forward_ad.unpack_dual(model(forward_ad.make_dual(X, X))).tangent is not None
        assert model.dtypes == [FULL]

    def test_gradients_are_in_fp32(self) -> None:
        model = Net()
        mixed(model)
        model(X).sum().backward()
        assert model.layer.weight.grad is not None
        assert model.layer.weight.grad.dtype == FULL


class TestCompiled:
    def test_what_was_compiled_is_called_instead(self) -> None:
        model = Net()
        call_of(model, "cpu").compiled = lambda x: x + 1
        assert torch.equal(model(X), X + 1)

    @pytest.mark.parametrize("asked", [X.clone().requires_grad_(), {"x": X.clone().requires_grad_()}])
    def test_where_gradients_of_the_inputs_are_asked_for_the_model_runs_uncompiled(self, asked: Any) -> None:
        model = Net()
        call_of(model, "cpu").compiled = lambda x: None
        assert (model(**asked) if isinstance(asked, dict) else model(asked)) is not None
        assert model(X.requires_grad_(False)) is None

    def test_below_the_programs_own_autocast_what_was_compiled_in_mixed_precision_is_not_called(self) -> None:
        model = Net()
        mixed(model).compiled = lambda x: None
        with torch.autocast("cpu", dtype=HALF):
            assert model(X).dtype == HALF
        assert model(X) is None

    def test_inputs_that_another_model_made_are_compiled(self) -> None:
        model = Net()
        call_of(model, "cpu").compiled = lambda x: None
        assert model(nn.Linear(4, 4)(X)) is None

    def test_the_programs_own_compiled_call_stays_with_gradients_and_without(self) -> None:
        model, calls = Net(), []

        def own(x: Any) -> Any:
            calls.append(torch.is_autocast_enabled("cpu"))
            return model._call_impl(x)

        model._compiled_call_impl = own
        mixed(model)
        model(X)
        with torch.no_grad():
            model(X)
        assert calls == [True, False]

    @pytest.mark.slow
    def test_what_torch_compile_returned_keeps_its_call_to_itself(self) -> None:
        model = Net()
        wrap = torch.compile(model, backend="eager")
        assert mixed(wrap) is call_of(wrap, "cpu")
        assert vars(model).get(PLACE) is None


def call_with(model: Net, *names: str) -> list[str]:
    """The settings that are on, as the call itself knows them; `-name` is one that was turned off for good."""
    on = list(names)
    for name in names:
        one = Suspect(
            name="amp_dtype",
            turn_off=lambda name=name: on.remove(name) if name in on else None,
            turn_on=lambda name=name: on.append(name),
            failed=lambda error, why, name=name: on.append(f"-{name}"),
        )
        call_of(model, "cpu").suspects.add(one)
    return on


class TestSuspects:
    """What made a call fail is found and stays out; the program sees neither the failure nor what it had drawn."""

    @pytest.mark.parametrize("guilty", ["first", "second", "third"])
    def test_only_what_was_the_cause_is_out_after_a_few_calls(self, guilty: str) -> None:
        model = Net()
        on = call_with(model, "first", "second", "third")
        model.then = lambda: wrong_dtype() if guilty in on else None
        for _ in range(4):
            model(X)
        assert set(on) == {"first", "second", "third", f"-{guilty}"} - {guilty}
        assert len(model.dtypes) == 4

    @pytest.mark.parametrize("names", [("one",), ("one", "other")])
    def test_what_fails_without_settings_too_blames_nothing(self, names: tuple[str, ...]) -> None:
        model = Net()
        on, model.then = call_with(model, *names), wrong_dtype
        with pytest.raises(RuntimeError, match="dtype") as raised:
            model(X)
        assert raised.value.__context__ is None
        assert on == list(names)
        assert len(model.dtypes) == 1

    @pytest.mark.parametrize("calls", [0, 5])
    def test_a_call_that_was_repeated_has_drawn_and_counted_once(self, calls: int) -> None:
        class Draws(Net):
            def __init__(self) -> None:
                super().__init__()
                self.drawn: list[Any] = []
                self.counts, self.own, self.calls = {"calls": 0}, random.Random(0), 0

            def forward(self, x: Any) -> Any:
                self.calls += 1
                self.counts["calls"] += 1
                self.drawn.append((torch.rand(1).item(), self.own.random()))
                return super().forward(x)

        plain, model = Draws(), Draws()
        on = call_with(model, "only")
        for one in (plain, model):
            torch.manual_seed(0)
            for _ in range(calls):
                one(X)
            model.then = lambda: wrong_dtype() if "only" in on else None
            one(X)
        assert on == ["-only"]
        assert (model.drawn, model.counts, model.calls) == (plain.drawn, {"calls": calls + 1}, calls + 1)
        assert len(model.dtypes) == calls + 1

    def test_statistics_count_a_batch_once_if_they_can_be_put_back_and_else_the_program_sees_the_exception(
        self,
    ) -> None:
        class Norm(Net):
            def __init__(self) -> None:
                super().__init__()
                self.norm = nn.BatchNorm1d(4)

            def forward(self, x: Any) -> Any:
                return super().forward(self.norm(x))

        model = Norm()
        on = call_with(model, "only")
        model.then = lambda: wrong_dtype() if "only" in on else None
        model(X)
        assert (on, int(model.norm.num_batches_tracked)) == (["-only"], 1)
        late = Norm()
        on = call_with(late, "only")
        for _ in range(4):
            late(X)
        late.then = lambda: wrong_dtype() if "only" in on else None
        with pytest.raises(RuntimeError, match="dtype"):
            late(X)
        assert (on, int(late.norm.num_batches_tracked)) == (["-only"], 5)
        late(X)  # which is without the setting from now on

    def test_what_fails_compiled_and_then_otherwise_uncompiled_is_repeated_without_the_cause(self) -> None:
        def fails(x: Any) -> Any:
            return nn.functional.dropout(x, p=2)  # raised by torch's code, for no setting's reason

        model = Net()
        on = call_with(model, "only")
        call_of(model, "cpu").compiled = fails
        model.then = lambda: wrong_dtype() if "only" in on else None
        assert model(X).dtype == FULL
        assert (on, model.dtypes) == (["-only"], [FULL])

    def test_without_gradients_a_failure_is_the_programs_at_once(self) -> None:
        model = Net()
        on, model.then = call_with(model, "kept"), wrong_dtype
        with torch.no_grad(), pytest.raises(RuntimeError):
            model(X)
        assert (on, len(model.dtypes)) == (["kept"], 1)

    @pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
    def test_without_gradients_a_call_that_fails_in_channels_last_is_repeated_without_it(self, off: Any) -> None:
        class Views(nn.Sequential):
            def forward(self, x: Any) -> Any:
                self.calls = getattr(self, "calls", 0) + 1
                return super().forward(x).view(len(x), -1)

        model = Views(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        root = rooted(model, torch.optim.SGD(model.parameters()))
        failures: list[str] = []
        root.failed = lambda name, why: failures.append(name)
        installer = Installer([root], guarded=True)
        assert installer.obstacles({"channels_last": True, "amp_dtype": "bfloat16"}) == {}
        installer.switch({"channels_last": True, "amp_dtype": "bfloat16"})
        with off():
            assert model(torch.ones(2, 3, 8, 8)).shape == (2, 144)
        assert (failures, model.calls, int(model[1].num_batches_tracked)) == (["channels_last"], 1, 1)
        model(torch.ones(2, 3, 8, 8)).sum().backward()
        assert failures == ["channels_last"]
        assert model[0].weight.is_contiguous()

    @pytest.mark.parametrize("calls", [0, 3])
    @pytest.mark.parametrize(
        "fault",
        [
            RuntimeError("expected dtype Float"),
            ValueError("short batch"),
            KeyError("dtype"),
            AssertionError(),
            Signal(),
        ],
    )
    def test_what_the_program_raises_itself_it_sees_at_once(self, fault: Exception, calls: int) -> None:
        def then() -> None:
            raise fault

        model, samples = Net(), iter(range(9))
        on = call_with(model, "kept")
        for _ in range(calls):
            model(X)
        model.then = lambda: (next(samples), then())
        with pytest.raises(type(fault)):
            model(X)
        assert (on, next(samples)) == (["kept"], 1)


class Two(tuple[Any, Any]):
    """A tuple that is made of two arguments, so that nothing else can copy it."""

    def __new__(cls, left: Any, right: Any) -> Any:
        return super().__new__(cls, (left, right))


class TestAnOutputThatCannotBeCopied:
    def mixed(self) -> tuple[Any, list[str]]:
        class Odd(Net):
            def forward(self, x: Any) -> Any:
                out = super().forward(x)
                return Two(out, 1) if x.sum() < 0 else out

        model, on = Odd(), ["on"]

        def turn_off() -> None:
            call.dtype = None

        def failed(error: Exception, why: str | None) -> None:
            on[:] = [f"{error} ({why})"]

        call = mixed(model)
        call.suspects.add(Suspect(name="amp_dtype", turn_off=turn_off, turn_on=lambda: None, failed=failed))
        call.suspects.add(
            Suspect(name="channels_last", turn_off=on.clear, turn_on=on.clear, failed=lambda *_: on.clear())
        )
        for _ in range(3):
            model(X)
        return model, on

    def test_is_that_of_a_call_without_mixed_precision_which_alone_is_out(self) -> None:
        model, on = self.mixed()
        assert (type(model(-X)), model(-X)[0].dtype) == (Two, FULL)
        assert on == ["its output, of the class Two, cannot be copied with other tensors (None)"]
        assert model.dtypes == [*[HALF] * 3, FULL, FULL]

    def test_stays_as_it_is_if_the_call_cannot_be_made_again(self) -> None:
        model, on = self.mixed()
        model.then = lambda: vars(model).update(more=1)
        assert (type(model(-X)), model.dtypes[-1]) == (Two, HALF)
        assert (model(-X)[0].dtype, len(model.dtypes)) == (FULL, 5)
        assert on[0].endswith("(its attributes have changed)")


def missing() -> Any:
    """What torch's code raises, and compiled code in another type."""
    return nn.functional.embedding(torch.tensor([9]), torch.ones(2, 2))


class TestWhatACompiledCallRaises:
    """A compiled call raises other exceptions than a plain one, and skips the program's own except clauses."""

    def compiled(self, fails: Callable[[Any], Any]) -> tuple[Any, list[str]]:
        model = Net()
        on = call_with(model, "kept")
        call_of(model, "cpu").compiled = fails
        return model, on

    @pytest.mark.parametrize("calls", [0, 3])
    def test_the_program_gets_what_the_plain_call_returns_and_the_model_stays_compiled(self, calls: int) -> None:
        model, on = self.compiled(lambda x: missing() if x.sum() < 0 else None)
        for _ in range(calls):
            assert model(X) is None
        assert model(-X).shape == (2, 4)
        assert model(X) is None
        assert (on, len(model.dtypes)) == (["kept"], 1)

    def test_or_what_the_plain_call_raises_without_another_exception_before_it(self) -> None:
        model, on = self.compiled(lambda x: missing())
        model.then = lambda: list(X)[4]
        with pytest.raises(IndexError, match="list") as raised:
            model(X)
        assert raised.value.__context__ is None
        assert on == ["kept"]

    @pytest.mark.parametrize("fault", [Signal(), torch.cuda.OutOfMemoryError(), RuntimeError("CUDA error: assert")])
    def test_what_the_program_raises_itself_and_what_a_device_lacks_is_not_repeated(self, fault: Exception) -> None:
        def fails(x: Any) -> None:
            raise fault

        model, _ = self.compiled(fails)
        with pytest.raises(type(fault)):
            model(X)
        assert model.dtypes == []


class TestCopies:
    """A copy of all attributes, which has the Call too, computes with its own weights and as torch does."""

    def copied(self, model: Any, bias: float) -> Any:
        other = type(model).__new__(type(model))
        vars(other).update(vars(model))
        other._modules = {"layer": nn.Linear(4, 4)}
        nn.init.zeros_(other.layer.weight)
        nn.init.constant_(other.layer.bias, bias)
        return other

    @pytest.mark.parametrize("gone", [False, True])
    @pytest.mark.parametrize("gradients", [False, True])
    def test_it_has_weights_of_its_own(self, gone: bool, gradients: bool) -> None:
        model = Net()
        mixed(model).compiled = lambda x: None
        other = self.copied(model, 1 + 2**-12)
        if gone:
            del model
        with torch.set_grad_enabled(gradients):
            assert torch.equal(other(X), torch.full((2, 4), 1 + 2**-12))
        assert other.dtypes[-1] == FULL

    def test_a_replica_for_several_devices_does(self) -> None:
        model: Any = Net()
        mixed(model)
        replica = model._replicate_for_data_parallel()
        replica._modules = self.copied(model, 3.0)._modules
        assert torch.equal(replica(X), torch.full((2, 4), 3.0))

    def test_in_threads_each_has(self) -> None:
        model = Net()
        mixed(model)
        copies = [self.copied(model, float(number)) for number in range(8)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda one: one(X)[0, 0].item(), copies * 20))
        assert found == [float(number) for number in range(8)] * 20

    def test_the_programs_own_compiled_call_is_the_originals_as_it_is_without_gputune(self) -> None:
        model: Any = Net()
        model._compiled_call_impl = lambda x: "compiled"
        mixed(model)
        assert self.copied(model, 1.0)(X) == "compiled"

    def test_traced_it_does(self) -> None:
        model = Net()
        mixed(model)
        other = self.copied(model, 2.0)
        other.forward = other.layer.forward
        assert torch.equal(torch.jit.trace(other, X)(X), torch.full((2, 4), 2.0))

    @pytest.mark.slow
    def test_compiled_by_the_program_it_does(self) -> None:
        model = Net()
        mixed(model)
        compiled = torch.compile(self.copied(model, 2.0), backend="eager")
        assert torch.equal(compiled(X), torch.full((2, 4), 2.0))
        assert isinstance(vars(model).get(PLACE), Call)


class TestOtherWeights:
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
    def test_a_model_that_the_program_converts_returns_what_it_returns_without_gputune(self, dtype: Any) -> None:
        model = Net()
        mixed(model)
        model(X)
        model.to(dtype)
        assert model(X.to(dtype)).dtype == dtype
        model.float()
        assert (model(X).dtype, model.dtypes[-1]) == (FULL, HALF)

    def test_so_does_one_that_is_called_with_other_weights(self) -> None:
        model = Net()
        mixed(model)
        model(X)
        halves = {name: one.to(HALF) for name, one in model.state_dict().items()}
        assert torch.func.functional_call(model, halves, (X.to(HALF),)).dtype == HALF

    def test_a_weight_may_vanish(self) -> None:
        model = Net()
        mixed(model)
        model(X)
        model.layer.bias = None
        assert model(X).dtype == FULL
        assert model.bfloat16()(X.to(HALF)).dtype == HALF


class TestSaved:
    @pytest.mark.parametrize("kind", [Net, SavesAll])
    def test_a_copy_and_a_pickle_compute_as_the_plain_model(self, kind: Any) -> None:
        model = kind()
        mixed(model)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert vars(other).get(PLACE) is None
            assert torch.equal(other(X), model.layer(X))
            assert not isinstance(vars(model).get(PLACE), type(None))

    def test_the_names_of_the_state_dict_stay(self) -> None:
        model = Net()
        names = list(model.state_dict())
        mixed(model)
        assert list(model.state_dict()) == names

    def test_the_call_does_not_keep_the_model_alive(self) -> None:
        import weakref

        model = Net()
        call = mixed(model)
        gone = weakref.ref(model)
        del model
        assert gone() is None
        assert call.dtype == HALF


def test_a_model_has_one_call() -> None:
    model = Net()
    assert call_of(model, "cpu") is call_of(model, "cpu") is vars(model).get(PLACE)
