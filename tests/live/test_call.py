"""A model's call with something put into it: what changes, what is taken out again, and what is never saved."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from gputune.live.call import PLACE, Call, Suspect, call_of


class Net(nn.Module):
    """Notes the dtype that its layer computes in, and fails with `fault` as often as `failures` says."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.dtypes: list[Any] = []
        self.failures, self.fault = 0, RuntimeError("mat1 and mat2 must have the same dtype")

    def forward(self, x: Any) -> Any:
        out = self.layer(x)
        self.dtypes.append(out.dtype)
        if self.failures:
            self.failures -= 1
            raise self.fault
        return out


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

    def test_below_the_programs_own_autocast_nothing_is_added_and_nothing_restored(self) -> None:
        model = Net()
        mixed(model)
        with torch.autocast("cpu", dtype=torch.float16):
            assert model(X).dtype == torch.float16
        assert model.dtypes == [torch.float16]

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


class TestSuspects:
    """What made a call fail is found and stays out; the program sees neither the failure nor what it had drawn."""

    def call_with(self, model: Net, *names: str) -> list[str]:
        """What is put in, as the call itself knows it; `-name` for what was taken out for good."""
        inside = list(names)
        for name in names:
            one = Suspect(
                turn_off=lambda name=name: inside.remove(name),
                turn_on=lambda name=name: inside.append(name),
                failed=lambda error, name=name: inside.append(f"-{name}"),
            )
            call_of(model, "cpu").suspect(one)
        model.inside = inside  # type: ignore[assignment]
        return inside

    @pytest.mark.parametrize("guilty", ["first", "second", "third"])
    @pytest.mark.parametrize("fault", [RuntimeError("dtype"), AssertionError(), KeyError("logits")])
    def test_only_what_was_the_cause_is_out_after_a_few_calls(self, guilty: str, fault: Exception) -> None:
        class Fails(Net):
            def forward(self, x: Any) -> Any:
                if guilty in self.inside:
                    raise fault
                return super().forward(x)

        model = Fails()
        inside = self.call_with(model, "first", "second", "third")
        for _ in range(4):
            model(X)
        assert set(inside) == {"first", "second", "third", f"-{guilty}"} - {guilty}
        assert len(model.dtypes) == 4

    @pytest.mark.parametrize("names", [("one",), ("one", "other")])
    def test_the_programs_own_exception_blames_nothing(self, names: tuple[str, ...]) -> None:
        model = Net()
        inside = self.call_with(model, *names)
        model.failures = 2
        with pytest.raises(RuntimeError, match="mat1 and mat2") as raised:
            model(X)
        assert raised.value.__context__ is None
        assert inside == list(names)

    def test_a_repeated_call_draws_the_same_and_counts_once(self) -> None:
        class Draws(Net):
            def __init__(self) -> None:
                super().__init__()
                self.norm, self.drawn = nn.BatchNorm1d(4), []

            def forward(self, x: Any) -> Any:
                self.drawn.append(torch.rand(1).item())
                return super().forward(self.norm(x))

        model = Draws()
        self.call_with(model, "only")
        model.failures = 1
        model(X)
        assert model.drawn[0] == model.drawn[1]
        assert model.norm.num_batches_tracked == 1

    @pytest.mark.parametrize("fault", [torch.cuda.OutOfMemoryError("no memory"), StopIteration(), Exception("enough")])
    def test_what_nobody_raises_for_a_wrong_dtype_or_layout_passes(self, fault: Exception) -> None:
        model = Net()
        inside = self.call_with(model, "kept")
        model.failures, model.fault = 1, fault  # type: ignore[assignment]
        with pytest.raises(type(fault)):
            model(X)
        assert inside == ["kept"]

    def test_without_gradients_a_failure_is_the_users_at_once(self) -> None:
        model = Net()
        inside = self.call_with(model, "kept")
        model.failures = 1
        with torch.no_grad(), pytest.raises(RuntimeError):
            model(X)
        assert inside == ["kept"]


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
