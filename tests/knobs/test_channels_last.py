"""channels_last: parameters, gradients and the optimizer's state change their layout together, and back."""

from typing import Any

import pytest
import torch
from hands_on import convnet, rooted, stepped
from torch import nn

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
