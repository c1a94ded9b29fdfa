"""channels_last: parameters, gradients and the optimizer's state change their layout together, and back."""

from typing import Any

import pytest
import torch
from hands_on import convnet, mlp, rooted, stepped
from torch import nn

from gputune.inject.hands import channels_last

LAST = torch.channels_last


def layouts(model: Any, optimizer: Any) -> set[bool]:
    """Whether the images among its tensors are in channels_last."""
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
    assert channels_last.put_in(root, True) is True
    assert layouts(model, optimizer) == {True}
    assert root.call.channels_last
    channels_last.take_out(root)
    assert layouts(model, optimizer) == {False}
    assert not root.call.channels_last
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), before, strict=True))


@pytest.mark.slow
def test_training_goes_on_as_without_it() -> None:
    losses = []
    for put_in in (False, True):
        torch.manual_seed(0)
        model = convnet()
        optimizer = stepped(model, torch.optim.AdamW)
        if put_in:
            channels_last.put_in(rooted(model, optimizer), True)
        for _ in range(3):
            optimizer.zero_grad()
            output = model(torch.ones(2, 3, 8, 8))
            assert output.is_contiguous()
            output.square().mean().backward()
            optimizer.step()
        losses.append(float(output.detach().square().mean()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_parameters_stay_the_objects_that_the_optimizer_holds() -> None:
    model = convnet()
    before = list(model.parameters())
    channels_last.put_in(rooted(model), True)
    assert all(one is other for one, other in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize(
    ("model", "why", "users"),
    [
        (mlp(), "it has no 2-d convolutions", False),
        (nn.Conv1d(3, 3, 3), "it has no 2-d convolutions", False),
        (nn.ModuleList([nn.Conv2d(3, 3, 3), nn.Conv3d(3, 3, 3)]), "it has 5-d tensors", False),
        (convnet().to(memory_format=LAST), "the program uses channels_last itself", True),
    ],
)
def test_what_keeps_it_out(model: Any, why: str, users: bool) -> None:
    obstacle = channels_last.obstacle(rooted(model), True)
    assert obstacle is not None
    assert (str(obstacle.why), obstacle.users) == (why, users)


class TestDistributed:
    """The wrap lays out its buckets by the gradients, so the model is converted before."""

    def wrap(self, model: Any) -> Any:
        wrap = type("DistributedDataParallel", (nn.Sequential,), {})()
        wrap.module = model
        return wrap

    def test_a_model_that_was_wrapped_before_is_left(self) -> None:
        obstacle = channels_last.obstacle(rooted(self.wrap(convnet())), True)
        assert obstacle is not None
        assert str(obstacle.why) == "DistributedDataParallel had wrapped it before"

    def test_one_that_was_converted_before_is_not_converted_again(self) -> None:
        model = convnet()
        channels_last.convert(model)
        assert channels_last.is_last(model)
        root = rooted(self.wrap(model))
        root.converted = True
        places = [one.data_ptr() for one in model.parameters()]
        assert channels_last.obstacle(root, True) is None
        assert channels_last.put_in(root, True) is True
        assert [one.data_ptr() for one in model.parameters()] == places
        assert root.call.channels_last


@pytest.mark.parametrize("shape", [(4, 3, 1, 1), (4, 1, 3, 3)])
def test_weights_that_are_both_layouts_at_once_are_not_the_programs_choice(shape: tuple[int, ...]) -> None:
    model = nn.Conv2d(shape[1], shape[0], shape[2])
    assert not channels_last.is_last(model)
