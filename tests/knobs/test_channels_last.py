"""channels_last: parameters, gradients and the optimizer's state change their layout together, and back."""

import copy
from typing import Any

import pytest
import torch
from hands_on import convnet, rooted, stepped
from torch import nn
from torch.nn.utils import parameters_to_vector, prune

from gputune.knobs import channels_last

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
