"""channels_last: parameters, gradients and the optimizer's state change their layout together, and back."""

import copy
import math
import warnings
from types import ModuleType
from typing import Any

import pytest
import torch
from hands_on import convnet, rooted, stepped
from torch import nn
from torch.nn.utils import parameters_to_vector, prune

from gputune.knobs import channels_last
from gputune.live import flattened
from gputune.live.call import call_of

LAST = torch.channels_last


def layouts(model: Any, optimizer: Any) -> set[bool]:
    images = [one for one in model.parameters() if one.dim() == 4]
    tensors = [*images, *(one.grad for one in images)]
    tensors += [value for one in images for value in optimizer.state[one].values() if getattr(value, "ndim", 0) == 4]
    assert len(tensors) > 2 * len(images)
    return {one.is_contiguous(memory_format=LAST) for one in tensors}


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_everything_goes_in_and_out_and_keeps_its_values(kind: Any) -> None:
    model = convnet()
    optimizer = stepped(model, kind)
    before = [one.clone() for one in model.parameters()]
    root = rooted(model, optimizer)
    assert channels_last.obstacle(root, True) is None
    assert channels_last.turn_on(root, True) is True
    assert layouts(model, optimizer) == {True}
    assert root.call.channels_last
    channels_last.turn_off(root)
    assert layouts(model, optimizer) == {False}
    assert not root.call.channels_last
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), before, strict=True))


def test_parameters_stay_the_objects_that_the_optimizer_holds() -> None:
    model = convnet()
    before = list(model.parameters())
    channels_last.turn_on(rooted(model), True)
    assert all(one is other for one, other in zip(model.parameters(), before, strict=True))


def test_a_model_that_was_converted_before_it_was_wrapped_is_not_converted_again() -> None:
    model = convnet()
    channels_last.convert(model)
    assert channels_last.is_last(model)
    wrap = type("DistributedDataParallel", (nn.Sequential,), {})()
    wrap.module = model
    root = rooted(wrap)
    root.converted = True
    places = [one.data_ptr() for one in model.parameters()]
    assert channels_last.obstacle(root, True) is None
    assert channels_last.turn_on(root, True) is True
    assert [one.data_ptr() for one in model.parameters()] == places
    assert root.call.channels_last


@pytest.mark.parametrize("shape", [(4, 3, 1, 1), (4, 1, 3, 3)])
def test_weights_that_are_both_layouts_at_once_are_not_the_programs_choice(shape: tuple[int, ...]) -> None:
    model = nn.Conv2d(shape[1], shape[0], shape[2])
    assert not channels_last.is_last(model)


def test_a_buffer_in_the_layout_is_the_programs_choice() -> None:
    model = convnet()
    model.register_buffer("seen", torch.ones(2, 3, 4, 4).to(memory_format=LAST))
    found = channels_last.obstacle(rooted(model), True)
    assert found is not None
    assert found.users


def test_an_output_in_the_layout_is_the_programs_choice() -> None:
    found = channels_last.obstacle(rooted(convnet(), channels_last=True), True)
    assert found is not None
    assert found.users


class TestGradientsOfInputs:
    """They reach the program in the usual layout, with the values that they have without the setting."""

    def turned_on(self) -> tuple[Any, Any]:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 4, 3))
        plain = copy.deepcopy(model)
        channels_last.turn_on(rooted(model), True)
        return model, plain

    @pytest.mark.parametrize("mixed", [False, True])
    @pytest.mark.parametrize("shape", [(2, 3, 8, 8), (3, 8, 8)])
    def test_a_gradient_penalty_flattens_them(self, shape: tuple[int, ...], mixed: bool) -> None:
        penalties = []
        for model in self.turned_on():
            call_of(model, "cpu").dtype = torch.bfloat16 if mixed else None
            x = torch.linspace(0, 1, math.prod(shape)).reshape(shape).requires_grad_()
            (gradient,) = torch.autograd.grad(model(x).square().mean(), x, create_graph=True)
            gradient.view(-1).norm().backward()
            penalties.append([gradient, model[0].weight.grad])
        for one, other in zip(*penalties, strict=True):
            assert torch.allclose(one, other, rtol=0.1 if mixed else 1e-3, atol=1e-3)

    def test_hooks_and_retained_gradients_too(self) -> None:
        model, plain = self.turned_on()
        for one in (model, plain):
            shapes: list[Any] = []
            between = torch.ones(2, 3, 8, 8, requires_grad=True) * 2
            between.retain_grad()
            between.register_hook(lambda gradient: shapes.append(gradient.view(2, -1).shape))  # noqa: B023
            one(between).sum().backward()
            assert between.grad.is_contiguous()
            assert shapes == [(2, 192)]

    def test_functional_transforms_work(self) -> None:
        model, plain = self.turned_on()
        x = torch.rand(2, 3, 8, 8)
        func = torch.func
        for transform in (func.jacrev, func.jacfwd, lambda one: func.vmap(func.grad(lambda x: one(x).sum()))):
            assert torch.allclose(transform(model)(x), transform(plain)(x), atol=1e-6)

    def test_torchs_check_of_gradients_passes(self) -> None:
        model = nn.Conv2d(1, 2, 2)
        channels_last.turn_on(rooted(model), True)
        x = torch.rand(1, 1, 3, 3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(model.double(), x)

    def test_inputs_that_the_program_has_in_channels_last_stay_so(self) -> None:
        model, _ = self.turned_on()
        x = torch.rand(2, 3, 8, 8).to(memory_format=LAST).requires_grad_()
        (gradient,) = torch.autograd.grad(model(x).sum(), x)
        assert gradient.is_contiguous(memory_format=LAST)

    @pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
    def test_without_gradients_the_model_gets_the_input_itself(self, off: Any) -> None:
        model, _ = self.turned_on()
        given: list[Any] = []
        model.register_forward_pre_hook(lambda module, inputs: given.extend(inputs))
        x = torch.ones(2, 3, 8, 8, requires_grad=True)
        with off():
            model(x)
        assert given[0] is x

    def test_an_input_that_is_returned_is_itself(self) -> None:
        class Both(nn.Conv2d):
            def forward(self, x: Any, *, mask: Any) -> Any:
                return super().forward(x), x, mask

        model = Both(3, 4, 3)
        channels_last.turn_on(rooted(model), True)
        x = torch.ones(2, 3, 8, 8, requires_grad=True)
        assert all(one is x for one in model(x, mask=x)[1:])


class TestFlattened:
    """Torch's own utilities flatten weights in the usual order, whatever their layout."""

    def turned_on(self) -> tuple[Any, Any]:
        model = convnet()
        plain = copy.deepcopy(model)
        channels_last.turn_on(rooted(model, stepped(model, torch.optim.SGD)), True)
        plain.load_state_dict(model.state_dict())
        for one, other in zip(plain.parameters(), model.parameters(), strict=True):
            one.grad = other.grad.contiguous()
        return model, plain

    def test_a_vector_of_weights_and_of_gradients(self) -> None:
        model, plain = self.turned_on()
        for flatten in (parameters_to_vector, nn.utils.parameters_to_vector):
            assert torch.equal(flatten(model.parameters()), flatten(plain.parameters()))
            gradients = [[one.grad for one in made.parameters()] for made in (model, plain)]
            assert torch.equal(*map(flatten, gradients))

    def test_weights_from_a_vector(self) -> None:
        model, plain = self.turned_on()
        vector = torch.arange(float(len(parameters_to_vector(plain.parameters()))))
        for one in (model, plain):
            nn.utils.vector_to_parameters(vector, one.parameters())
        assert all(torch.equal(one, two) for one, two in zip(model.parameters(), plain.parameters(), strict=True))

    @pytest.mark.parametrize("cut", [prune.l1_unstructured, prune.random_unstructured])
    def test_pruning(self, cut: Any) -> None:
        model, plain = self.turned_on()
        for one in (model, plain):
            torch.manual_seed(0)
            cut(one[0], "weight", amount=0.5)
        assert int((model[0].weight == 0).sum()) == int((plain[0].weight == 0).sum()) == 54
        if cut is prune.l1_unstructured:
            assert torch.equal(model[0].weight, plain[0].weight)

    def test_a_step_of_lbfgs(self) -> None:
        model, plain = self.turned_on()
        for one in (model, plain):
            optimizer = torch.optim.LBFGS(one.parameters(), max_iter=1)
            optimizer.step(lambda: 1.0)
        for one, other in zip(model.parameters(), plain.parameters(), strict=True):
            assert torch.allclose(one, other, atol=1e-6)

    def test_orthogonal_weights_are_drawn_as_in_the_usual_layout(self) -> None:
        model, plain = self.turned_on()
        for one in (model, plain):
            torch.manual_seed(0)
            assert nn.init.orthogonal_(one[0].weight, gain=2) is one[0].weight
        assert torch.equal(model[0].weight, plain[0].weight)
        assert model[0].weight.is_contiguous(memory_format=LAST)

    def test_a_gradient_of_the_programs_own_is_no_warning(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model, _ = self.turned_on()
            model[0].weight.grad = torch.zeros(model[0].weight.shape)
            model(torch.ones(2, 3, 8, 8)).sum().backward()


SAFETENSORS = """
def NAME(tensors, *kept):
    if not all(one.is_contiguous() for one in tensors.values()):
        raise ValueError("You are trying to save a non contiguous tensor")
    if len({one.data_ptr() for one in tensors.values()}) < len(tensors):
        raise RuntimeError("Some tensors share memory")
    return tensors

def save(tensors):
    return NAME(tensors, [])
"""


@pytest.mark.parametrize("name", ["_flatten", "_flatten_as_ptr"])
class TestSafetensors:
    def imported(self, name: str) -> Any:
        module = ModuleType("safetensors.torch")
        exec(SAFETENSORS.replace("NAME", name), vars(module))
        flattened.saved(module)
        return module

    def test_weights_are_saved_in_the_usual_layout(self, name: str) -> None:
        model = convnet()
        channels_last.turn_on(rooted(model), True)
        found = self.imported(name).save(model.state_dict())
        assert list(found) == list(model.state_dict())
        assert all(torch.equal(found[key], one) for key, one in model.state_dict().items())

    def test_what_else_it_refuses_it_still_refuses(self, name: str) -> None:
        weight = torch.ones(2, 3, 4, 4).to(memory_format=LAST)
        with pytest.raises(RuntimeError, match="share memory"):
            self.imported(name).save({"one": weight, "tied": weight.detach()})
        with pytest.raises(ValueError, match="contiguous"):
            self.imported(name).save({"one": torch.ones(2, 3).mT})


def shared(model: Any) -> Any:
    return model.share_memory()


def flat(model: Any) -> Any:
    whole, start = torch.cat([one.data.flatten() for one in model.parameters()]), 0
    for one in model.parameters():
        one.data = whole[start : start + one.numel()].view_as(one)
        start += one.numel()
    return whole


def of_another_model(model: Any) -> Any:
    other = convnet()
    other[0].weight.data = model[0].weight.data
    return other


def flat_gradients(model: Any) -> Any:
    whole = torch.zeros(2, *model[0].weight.shape)
    model[0].weight.grad = whole[0]
    return whole


class TestOtherUsers:
    """Other memory would be lost to whatever uses a weight's."""

    @pytest.mark.parametrize(
        ("use", "why"),
        [
            (shared, "other processes may share the memory of its weights"),
            (flat, "one of its weights is part of a larger tensor"),
            (of_another_model, "another tensor or array shares the memory of one of its weights"),
            (lambda model: model[0].weight.detach(), "another tensor or array shares the memory of one of its weights"),
            (lambda model: model[0].weight.detach().numpy(), "another tensor or array shares the memory of one of its"),
            (lambda model: model.state_dict(), "another tensor or array shares the memory of one of its weights"),
            (flat_gradients, "one of its gradients is part of a larger tensor"),
        ],
    )
    def test_a_model_with_such_a_weight_or_gradient_is_left_alone(self, use: Any, why: str) -> None:
        model = convnet()
        used = use(model)
        found = channels_last.obstacle(rooted(model), True)
        assert found is not None
        assert found.why.startswith(why)
        assert not found.users
        del used  # which had to be there until now

    def test_two_parameters_with_one_memory_are_left_and_one_that_two_layers_have_is_not(self) -> None:
        model = nn.Sequential(nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3))
        model[1].weight = model[0].weight
        assert channels_last.obstacle(rooted(model, stepped(model, torch.optim.SGD)), True) is None
        model[1].weight = nn.Parameter(model[0].weight.data)
        assert channels_last.obstacle(rooted(model), True) is not None

    @pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
    def test_neither_the_optimizer_nor_a_graph_nor_what_is_gone_is_one(self, kind: Any) -> None:
        model = convnet()
        optimizer = stepped(model, kind)
        copied, seen = copy.deepcopy(model.state_dict()), [float(model[0].weight.detach().numpy().sum())]
        loss = model(torch.ones(2, 3, 8, 8)).square().mean()
        assert channels_last.obstacle(rooted(model, optimizer), True) is None
        assert (len(copied), len(seen), loss.requires_grad) == (9, 1, True)

    def test_what_is_used_once_it_is_on_stays_where_it_is_as_it_is_turned_off(self) -> None:
        model = convnet()
        root = rooted(model, stepped(model, torch.optim.AdamW))
        channels_last.turn_on(root, True)
        weight = model[0].weight.detach()
        channels_last.turn_off(root)
        assert weight.data_ptr() == model[0].weight.data_ptr()
        assert model[3].weight.is_contiguous()
        assert model(torch.ones(2, 3, 8, 8)).shape == (2, 4, 6, 6)
