"""The fused form of a running optimizer: the same steps, saved as if it never had been fused."""

import copy
from fractions import Fraction
from typing import Any

import numpy
import pytest
import torch
from hands_on import mlp, rooted, stepped
from torch import nn

from gputune.knobs import fused_optimizer

KINDS = [torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD]
X = torch.ones(2, 4)


def train(model: Any, optimizer: Any, steps: int = 3) -> list[Any]:
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).square().mean().backward()
        optimizer.step()
    return [one.detach().clone() for one in model.parameters()]


def fused(model: Any, optimizer: Any) -> Any:
    root = rooted(model, optimizer)
    assert fused_optimizer.obstacle(root, True) is None
    assert fused_optimizer.turn_on(root, True) is True
    return root


def fused_model(kind: Any) -> tuple[Any, Any]:
    model = mlp()
    optimizer = stepped(model, kind)
    fused(model, optimizer)
    return model, optimizer


def close(some: list[Any], others: list[Any]) -> bool:
    return all(torch.allclose(one, other, rtol=1e-4, atol=1e-6) for one, other in zip(some, others, strict=True))


@pytest.mark.parametrize("kind", KINDS)
class TestPutIn:
    def test_it_steps_as_before(self, kind: Any) -> None:
        torch.manual_seed(0)
        plain = mlp()
        model = copy.deepcopy(plain)
        expected = train(plain, stepped(plain, kind))
        optimizer = stepped(model, kind)
        fused(model, optimizer)
        assert all(group["fused"] for group in optimizer.param_groups)
        assert close(train(model, optimizer), expected)

    def test_what_is_saved_does_not_know_of_it(self, kind: Any) -> None:
        model = mlp()
        optimizer = stepped(model, kind)
        before = copy.deepcopy(optimizer.state_dict())
        fused(model, optimizer)
        after = optimizer.state_dict()
        assert after["param_groups"] == before["param_groups"]
        assert [group["fused"] for group in after["param_groups"]] == [None]
        assert after["state"].keys() == before["state"].keys()
        for key, state in after["state"].items():
            for name, value in state.items():
                was = before["state"][key][name]
                assert torch.equal(value, was) if isinstance(value, torch.Tensor) else value == was
        steps = [state["step"] for state in after["state"].values() if "step" in state]
        assert all((step.device.type, step.dtype) == ("cpu", torch.float32) for step in steps)

    def test_saving_does_not_change_the_running_one(self, kind: Any) -> None:
        model, optimizer = fused_model(kind)
        saved = optimizer.state_dict()
        kept = copy.deepcopy(saved["state"])
        assert all(group["fused"] for group in optimizer.param_groups)
        train(model, optimizer)
        for key, state in kept.items():
            assert "step" not in state or torch.equal(saved["state"][key]["step"], state["step"])

    def test_what_was_saved_is_loaded_by_a_plain_one_and_by_a_fused_one(self, kind: Any) -> None:
        torch.manual_seed(0)
        first, optimizer = fused_model(kind)
        saved, weights = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(first.state_dict())
        expected = train(first, optimizer)
        for fuse in (False, True):
            model = mlp()
            other = stepped(model, kind)
            if fuse:
                fused(model, other)
            model.load_state_dict(weights)
            other.load_state_dict(copy.deepcopy(saved))
            assert [group["fused"] for group in other.param_groups] == [True if fuse else None]
            assert close(train(model, other), expected)

    def test_twice_is_once(self, kind: Any) -> None:
        model, optimizer = fused_model(kind)
        fused(model, optimizer)
        assert len(optimizer._optimizer_state_dict_post_hooks) == 1

    def test_a_group_that_is_added_later_steps_too(self, kind: Any) -> None:
        model, more = mlp(), mlp()
        optimizer = stepped(model, kind)
        fused(model, optimizer)
        optimizer.add_param_group({"params": list(more.parameters())})
        before = [one.detach().clone() for one in more.parameters()]
        more(X).square().mean().backward()
        optimizer.step()
        assert not torch.equal(before[0], next(more.parameters()))

    def test_a_shallow_copy_shares_groups_and_state_and_is_looked_after_too(self, kind: Any) -> None:
        torch.manual_seed(0)
        plain = mlp()
        model = copy.deepcopy(plain)
        other, optimizer = stepped(plain, kind), stepped(model, kind)
        fused(model, optimizer)
        shared = copy.copy(optimizer)
        assert type(shared) is kind
        assert shared.state is optimizer.state
        assert shared.param_groups is optimizer.param_groups
        assert shared.state_dict()["param_groups"][0]["fused"] is None
        assert copy.deepcopy(shared).param_groups[0]["fused"] is None
        sliced(model[2])
        sliced(plain[2])
        assert close(train(model, shared), train(plain, copy.copy(other)))
        assert close(train(model, optimizer), train(plain, other))

    def test_a_pickle_goes_on(self, kind: Any) -> None:
        model, optimizer = fused_model(kind)
        copied, other = copy.deepcopy((model, optimizer))
        assert close(train(copied, other), train(model, optimizer))


def test_of_two_optimizers_the_one_that_can_be_is_fused() -> None:
    model = mlp()
    can, cannot = stepped(model, torch.optim.AdamW), stepped(model, torch.optim.RMSprop)
    root = rooted(model, cannot, can)
    assert fused_optimizer.obstacle(root, True) is None
    fused_optimizer.turn_on(root, True)
    assert can.param_groups[0]["fused"]
    assert "fused" not in cannot.param_groups[0]


class Gradients(nn.Module):
    """Its gradient becomes sparse, as that of an embedding does, once it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.sparse = nn.Parameter(torch.ones(6, 4)), False

    def forward(self, x: Any) -> Any:
        return nn.functional.embedding(torch.tensor([1, 2]), self.weight, sparse=self.sparse) * x


def noting(model: Any, optimizer: Any) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    root = rooted(model, optimizer, failed=lambda name, why: told.append((name, why)))
    fused_optimizer.turn_on(root, True)
    return told


@pytest.mark.parametrize("closure", [False, True])
def test_a_gradient_that_became_sparse_turns_it_off_before_the_step_and_the_step_is_made(closure: bool) -> None:
    model, plain = Gradients(), Gradients()
    optimizer, other = stepped(model, torch.optim.SGD), stepped(plain, torch.optim.SGD)
    told = noting(model, optimizer)
    for sparse in (False, True, False):
        for one, its in ((model, optimizer), (plain, other)):
            one.sparse = sparse

            def loss(one: Any = one, its: Any = its) -> Any:
                its.zero_grad()
                found = one(X).square().mean()
                found.backward()
                return found

            its.step(loss) if closure else (loss(), its.step())
    assert torch.allclose(model.weight, plain.weight)
    assert told == [("fused_optimizer", "its gradients became sparse")]
    assert not optimizer.param_groups[0]["fused"]


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        *((kind, "lr", value) for kind in KINDS for value in (numpy.array(0.1), numpy.float32(0.1))),
        *((kind, "maximize", numpy.True_) for kind in KINDS),
        (torch.optim.SGD, "dampening", numpy.array(0.1)),
        (torch.optim.AdamW, "weight_decay", numpy.array(0.1)),
        (torch.optim.AdamW, "lr", Fraction(1, 10)),
        (torch.optim.AdamW, "amsgrad", 0),
    ],
)
def test_an_option_that_is_no_plain_number_is_stepped_with_as_without_it(kind: Any, option: str, value: Any) -> None:
    torch.manual_seed(0)
    model = mlp()
    plain = copy.deepcopy(model)
    optimizer, other = stepped(model, kind), stepped(plain, kind)
    told = noting(model, optimizer)
    for its in (optimizer, other):
        its.param_groups[0][option] = value
    assert close(train(model, optimizer), train(plain, other))
    assert optimizer.param_groups[0][option] is value
    assert told == [("fused_optimizer", f"its {option} became an object of the class {type(value).__name__}")]


@pytest.mark.parametrize("value", [numpy.float64(0.1), 0, torch.tensor(0.1)])
def test_other_numbers_are_stepped_with_fused(value: Any) -> None:
    model, optimizer = fused_model(torch.optim.AdamW)
    optimizer.param_groups[0]["lr"] = value
    train(model, optimizer)
    assert optimizer.param_groups[0]["fused"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_model_that_the_program_converts_is_stepped_as_without_it(dtype: Any) -> None:
    torch.manual_seed(0)
    model = mlp()
    plain = copy.deepcopy(model)
    optimizer, other = stepped(model, torch.optim.SGD), stepped(plain, torch.optim.SGD)
    told = noting(model, optimizer)
    for one, its in ((model, optimizer), (plain, other)):
        one.to(dtype)
        for _ in range(2):
            its.zero_grad()
            one(X.to(dtype)).square().mean().backward()
            its.step()
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), plain.parameters(), strict=True))
    assert told == [("fused_optimizer", f"its gradients became {str(dtype).removeprefix('torch.')}")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", [False, True])
def test_weights_that_the_program_lays_out_anew_are_stepped_as_without_it(kind: Any, late: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
    plain = copy.deepcopy(model)
    optimizer, other = stepped(model, kind), stepped(plain, kind)
    told = noting(model, optimizer)
    for one, its in ((model, optimizer), (plain, other)):
        for number in range(3):
            its.zero_grad()
            if number == 1 and not late:
                one.to(memory_format=torch.channels_last)
            one(torch.arange(384.0).view(2, 3, 8, 8).sin()).square().mean().backward()
            if number == 1 and late:
                one.to(memory_format=torch.channels_last)
            its.step()
    assert close(list(model.parameters()), list(plain.parameters()))
    assert (told, optimizer.param_groups[0]["fused"]) == ([], True)


def test_a_copy_of_all_attributes_is_pickled_with_its_own_state() -> None:
    _, optimizer = fused_model(torch.optim.AdamW)
    other = type(optimizer).__new__(type(optimizer))
    vars(other).update(vars(optimizer))
    other.param_groups = [{**group, "fused": None, "lr": 7.0} for group in optimizer.param_groups]
    assert copy.deepcopy(other).param_groups[0]["lr"] == 7.0


class Transposed(nn.Module):
    """Its weight is dense, but in another order than torch's usual one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(32.0).view(8, 4).sin().t())

    def forward(self, x: Any) -> Any:
        return (x @ self.weight).tanh()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [False, True])
def test_a_gradient_of_another_layout_than_its_weight_is_stepped_as_without_it(kind: Any, shared: bool) -> None:
    model, plain = Transposed(), Transposed()
    optimizer, other = stepped(model, kind), stepped(plain, kind)
    told = noting(model, optimizer)
    flat = torch.zeros(2, 32)
    for one, its, memory in ((model, optimizer, flat[0]), (plain, other, flat[1])):
        for _ in range(3):
            (found,) = torch.autograd.grad(one(X).square().sum(), [one.weight])
            if shared:
                memory.copy_(found.contiguous().flatten())
            one.weight.grad = memory.view(4, 8) if shared else found.contiguous()
            its.step()
            assert not shared or one.weight.grad.data_ptr() == memory.data_ptr()
    assert close([model.weight], [plain.weight])
    assert len(told) == shared


@pytest.mark.parametrize("kind", KINDS)
def test_so_is_that_which_a_later_hook_of_the_programs_gives(kind: Any) -> None:
    torch.manual_seed(0)
    model = mlp()
    plain = copy.deepcopy(model)

    def transpose(optimizer: Any, *_: Any) -> None:
        for one in optimizer.param_groups[0]["params"]:
            one.grad = one.grad.t().contiguous().t()

    optimizer, other = stepped(model, kind), stepped(plain, kind)
    fused(model, optimizer)
    optimizer.register_step_pre_hook(transpose)
    assert close(train(model, optimizer), train(plain, other))


def sliced(layer: Any) -> Any:
    """A larger tensor, of which a layer's weight is a part now."""
    full = torch.arange(float(layer.weight.numel() * 2)).view(len(layer.weight), -1).cos()
    layer.weight.data = full[:, : layer.weight.shape[1]]
    return full


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_with_gaps_is_never_stepped_by_the_fused_form(kind: Any) -> None:
    torch.manual_seed(0)
    model = mlp()
    plain = copy.deepcopy(model)
    optimizer, other = stepped(model, kind), stepped(plain, kind)
    told = noting(model, optimizer)
    (full, kept), (its_full, _) = [(full, full.clone()) for full in (sliced(model[2]), sliced(plain[2]))]
    assert close(train(model, optimizer), train(plain, other))
    assert torch.equal(full[:, 8:], kept[:, 8:])
    assert close([full], [its_full])
    assert told == [("fused_optimizer", "a weight of its is a view with gaps into a larger tensor")]
    sliced(plain[2])
    found = fused_optimizer.obstacle(rooted(plain, other), True)
    assert found is not None
    assert (found.why, found.users) == (told[0][1], False)


@pytest.mark.parametrize("named", [False, True])
def test_other_hooks_see_the_words_that_the_program_gave(named: bool) -> None:
    model, optimizer = fused_model(torch.optim.SGD)
    seen: list[tuple[int, list[str]]] = []
    for register in (optimizer.register_step_pre_hook, optimizer.register_step_post_hook):
        register(lambda _, inputs, named: seen.append((len(inputs), sorted(named))))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(X).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure=closure) if named else optimizer.step(closure)
    assert seen == [(1, ["closure"]) if named else (2, [])] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_that_come_late_are_stepped_as_without_it(kind: Any) -> None:
    torch.manual_seed(0)
    model, more = mlp(), nn.Linear(2, 2)
    made = [(model, more), copy.deepcopy((model, more))]
    for one, other in made:
        one[0].requires_grad_(False)
        optimizer = stepped(one, kind)
        if one is model:
            fused(one, optimizer)
        one[0].requires_grad_(True)
        optimizer.add_param_group({"params": list(other.parameters()), "lr": 0.1})
        train(nn.Sequential(one, other), optimizer)
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        train(nn.Sequential(one, other), optimizer)
    assert close(*[[*one.parameters(), *other.parameters()] for one, other in made])


@pytest.mark.parametrize("dampening", [0, 0.5])
@pytest.mark.parametrize("options", [{"nesterov": True}, {"weight_decay": 0.1, "maximize": True}])
def test_parameters_that_get_their_first_gradient_late_get_the_same_momentum(dampening: float, options: Any) -> None:
    torch.manual_seed(0)
    model = mlp()
    plain = copy.deepcopy(model)
    own = {"dampening": 0 if "nesterov" in options else dampening, **options}
    optimizer, other = (torch.optim.SGD(one.parameters(), lr=0.01, momentum=0.9, **own) for one in (model, plain))
    told: list[tuple[str, str]] = []
    for one, its in ((model, optimizer), (plain, other)):
        one[0].requires_grad_(False)
        train(one, its)
        told = noting(model, optimizer) if one is model else told
        train(one, its)
        one[0].requires_grad_(True)
        train(one, its)
    assert close(list(model.parameters()), list(plain.parameters()))
    assert len(told) == bool(own["dampening"])


def test_a_shallow_copy_of_an_optimizer_that_saves_in_its_own_way_is_made_in_that_way() -> None:
    class Own(torch.optim.SGD):
        def __getstate__(self) -> dict[str, Any]:
            return {**super().__getstate__(), "own": 1}  # type: ignore[no-untyped-call]

    fused_model(torch.optim.SGD)
    made = copy.copy(Own(mlp().parameters(), lr=0.1))
    assert (type(made), vars(made)["own"], made.param_groups[0]["lr"]) == (Own, 1, 0.1)
