"""Compiled graphs, whose backward passes give gradients to the weights that have some uncompiled, and to no others."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from hands_on import Squared
from torch import nn

from gputune.knobs.compile import BackwardFailed, compiled_call
from gputune.live.nets.backward import rehearse

LOGGED = list[float]()


@pytest.fixture
def uncompiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are compiled, but not their kernels, which would take most of the time."""
    torch._dynamo.reset()
    eager = torch._dynamo.lookup_backend("aot_eager")
    monkeypatch.setattr("torch._dynamo.lookup_backend", lambda _: lambda graph, inputs, **__: eager(graph, inputs))


def heads(self: Any, x: Any) -> Any:
    hidden = self.trunk(x).relu()
    return self.first(hidden), self.second(hidden)


def views(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    both = self.first(hidden)
    return both[:, :2], self.second(hidden).T, both[:, 2:], hidden.view(-1)


def detached(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    with torch.no_grad():
        target = self.second(hidden)
    return self.first(hidden) + target, self.second(hidden.detach())


def functions(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    return Squared.apply(self.first(hidden)), Squared.apply(self.second(hidden))


def checkpointed(self: Any, x: Any) -> Any:
    hidden = torch.utils.checkpoint.checkpoint(self.trunk, x, use_reentrant=False)
    return self.first(hidden), self.second(hidden)


def written_to(self: Any, x: Any) -> Any:
    other = self.second(x)
    other.add_(self.trunk(x))
    return self.first(x), other


def kept_aside(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    self.aside = self.second(hidden)
    return (self.first(hidden),)


def tied(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    return self.first(hidden), hidden @ self.first.weight, self.second(hidden)


def handed_on(self: Any, x: Any) -> Any:
    return self.first(x), self.second(x), self.trunk.weight.T * 2, self.trunk.bias


def log(gradient: Any) -> None:
    LOGGED.append(float(gradient.norm()))


def hooked_after_its_use(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    result = self.first(hidden)
    hidden.register_hook(log)
    return result


def hooked_view(self: Any, x: Any) -> Any:
    hidden = self.trunk(x).view(4, 2)
    result = self.first(hidden.view(2, 4))
    hidden.register_hook(log)
    return result


def hooked_view_of_the_input(self: Any, x: Any) -> Any:
    hidden = x.view(4, 2)
    result = self.first(hidden.view(2, 4))
    hidden.register_hook(log)
    return result


def hooked_before_its_use(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    hidden.register_hook(log)
    return self.first(hidden), self.second(hidden)


def hooked_before_a_branch(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    other = hidden * 2
    other.register_hook(log)
    return self.first(hidden), self.second(other)


def hooked_beside_a_shortcut(self: Any, x: Any) -> Any:
    hidden = self.trunk(x)
    self.kept = hidden.tanh()
    self.kept.register_hook(log)
    return self.first(self.kept) + hidden, self.second(hidden)


def rehearsed_call(model: Any) -> Any:
    return compiled_call(model, rehearse=lambda given, output: rehearse(model, given, output, "cpu"))


class Net(nn.Module):
    def __init__(self, form: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.trunk, self.first, self.second = (nn.Linear(4, 4) for _ in range(3))
        self.form = form

    def forward(self, x: Any) -> Any:
        return self.form(self, x)


def gradients(model: nn.Module, outputs: Any, asked: int, *more: Any) -> dict[str, Any]:
    for one in (*more, *model.parameters()):
        one.grad = None
    outputs[asked].square().sum().backward()
    named = [*model.named_parameters(), *((f"input {number}", one) for number, one in enumerate(more))]
    return {name: one.grad for name, one in named}


def assert_same(found: dict[str, Any], plain: dict[str, Any]) -> None:
    assert {name for name, one in found.items() if one is None} == {name for name, one in plain.items() if one is None}
    for name, one in plain.items():
        if one is not None:
            torch.testing.assert_close(found[name], one)


@pytest.mark.usefixtures("uncompiled_kernels")
class TestGradientsOfParts:
    @pytest.mark.parametrize(
        "form", [heads, views, detached, functions, checkpointed, written_to, kept_aside, tied, handed_on]
    )
    def test_what_the_loss_leaves_out_has_none(self, form: Callable[..., Any]) -> None:
        model = Net(form)
        plain, call = deepcopy(model), compiled_call(model)
        for batch in (3, 5):  # for which torch compiles once more
            x = torch.randn(batch, 4)
            for asked in range(len(plain(x))):
                assert_same(gradients(model, call(x), asked), gradients(plain, plain(x), asked))

    def test_nor_has_an_input_that_it_does_not_depend_on(self) -> None:
        model = Net(lambda self, x: (self.first(x[0]), self.second(x[1])))
        call, asked = compiled_call(model), [torch.ones(2, 4, requires_grad=True) for _ in range(2)]
        plain = gradients(model, model(asked), 0, *asked)
        assert_same(gradients(model, call(asked), 0, *asked), plain)
        assert plain["input 0"] is not None
        assert plain["input 1"] is None

    def test_a_number_that_changes_is_no_obstacle(self) -> None:
        model = Net(lambda self, x: (self.first(x[0]) * x[1], self.second(x[0])))
        call, x = compiled_call(model), torch.ones(2, 4)
        for number in (0.1, 0.2, 0.3):
            assert_same(gradients(model, call([x, number]), 1), gradients(model, model([x, number]), 1))

    def test_gradients_that_are_there_stay_as_they_are(self) -> None:
        model = Net(heads)
        call = compiled_call(model)
        call(torch.ones(2, 4))[1].sum().backward()
        before = model.second.weight.grad
        call(torch.ones(2, 4))[0].sum().backward()
        assert before is not None
        assert model.second.weight.grad is before
        assert before._version == 0

    @pytest.mark.parametrize("register", [torch.Tensor.register_hook, torch.Tensor.register_post_accumulate_grad_hook])
    def test_hooks_on_weights_are_called_as_uncompiled(self, register: Callable[..., Any]) -> None:
        model, seen = Net(heads), list[Any]()
        call, x = compiled_call(model), torch.ones(2, 4)
        call(x)
        register(model.second.weight, lambda one: seen.append(one.norm()))
        register(model.trunk.weight, lambda one: seen.append(one.norm()))
        for asked, calls in ((0, 1), (1, 2)):
            seen.clear()
            gradients(model, call(x), asked)
            assert len(seen) == calls

    def test_so_are_those_of_what_is_computed_which_nobody_can_see(self) -> None:
        model, before, seen = Net(lambda self, x: (self.first(x[0]), self.second(x[1]))), nn.Linear(4, 4), list[Any]()
        call, x = compiled_call(model), torch.ones(2, 4)
        for asked in (0, 1):
            given = before(x)
            given.register_hook(lambda gradient: seen.append(gradient.norm()))
            gradients(model, call([x, given]), asked)
            assert len(seen) == asked

    @pytest.mark.parametrize("form", [hooked_after_its_use, hooked_view, hooked_view_of_the_input])
    def test_a_forward_that_puts_a_hook_on_an_activation_that_it_has_used_fails(self, form: Callable[..., Any]) -> None:
        with pytest.raises(BackwardFailed, match="its forward puts a hook on an activation that it has used"):
            compiled_call(Net(form))(nn.Linear(4, 4)(torch.ones(2, 4)))

    @pytest.mark.parametrize("form", [hooked_before_its_use, hooked_before_a_branch, hooked_beside_a_shortcut])
    def test_other_hooks_are_called_as_they_are_uncompiled(self, form: Callable[..., Any]) -> None:
        model = Net(form)
        plain, call, x = deepcopy(model), compiled_call(model), torch.randn(3, 4)
        for asked in (0, 1, 0):
            LOGGED.clear()
            assert_same(gradients(model, call(x), asked), gradients(plain, plain(x), asked))
            middle = len(LOGGED) // 2
            assert LOGGED[:middle] == pytest.approx(LOGGED[middle:])

    def test_as_are_those_on_what_the_model_returns(self) -> None:
        model, seen = Net(heads), list[Any]()
        call, x = compiled_call(model), torch.ones(2, 4)
        for asked, calls in ((0, 1), (1, 2)):
            outputs = call(x)
            outputs[0].register_hook(lambda one: seen.append(one.norm())).remove()
            for one in outputs:
                one.register_hook(lambda one: seen.append(one.norm()))
            gradients(model, outputs, asked)
            assert len(seen) == calls

    def test_a_part_behind_a_break_of_the_graph_runs_uncompiled_and_no_part_twice(self) -> None:
        def forward(self: Any, x: Any) -> Any:
            hidden = self.norm(self.trunk(x))
            one, other = self.first(hidden), self.second(hidden)
            torch._dynamo.graph_break()
            return one * 2, other + 1

        model = Net(forward)
        model.norm = nn.BatchNorm1d(4)
        plain, call, x = deepcopy(model), compiled_call(model), torch.randn(3, 4)
        for asked in (0, 1):
            assert_same(gradients(model, call(x), asked), gradients(plain, plain(x), asked))
        assert model.norm.num_batches_tracked == 2

    def test_a_rehearsal_fails_where_gradients_of_zero_become_nan(self) -> None:
        model = Net(lambda self, x: (self.first(x), self.first(x - x).sqrt()))
        model.first.bias.data.zero_()
        with pytest.raises(BackwardFailed, match="gradients of zero become NaN"):
            rehearsed_call(model)(torch.ones(2, 4))

    def test_random_numbers_stay_as_they_are(self) -> None:
        model = Net(lambda self, x: (nn.functional.dropout(self.first(x)), self.second(x)))
        call, before = compiled_call(model), torch.get_rng_state()
        expected = [model(torch.ones(2, 4))[0], torch.rand(1)]
        torch.set_rng_state(before)
        for one, other in zip([call(torch.ones(2, 4))[0], torch.rand(1)], expected, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.slow
def test_with_torchs_own_kernels() -> None:
    model = Net(heads)
    plain, call, x = deepcopy(model), rehearsed_call(model), torch.randn(3, 4)
    for asked in (0, 1):
        assert_same(gradients(model, call(x), asked), gradients(plain, plain(x), asked))


@pytest.mark.slow
def test_no_graph_that_gives_its_buffers_away_gets_into_the_cache_on_disk(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("torch.compiler.config.cache_key_tag", "")
    model = Net(lambda self, x: Squared.apply(self.first(x)))
    for gives_away in (True, False):
        monkeypatch.setattr("torch._functorch.config.donated_buffer", gives_away)
        torch._dynamo.reset()
        loss = compiled_call(model)(torch.ones(2, 4)).sum()
        one = torch.autograd.grad(loss, model.first.weight, retain_graph=not gives_away)
    torch.testing.assert_close(torch.autograd.grad(loss, model.first.weight), one)
