"""The reference networks at the size that a CPU gets: they are what their names say, and they learn."""

from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
import torch
from making import steps_with

from gputune.advice._training_rows import FAMILIES, LEAST_FALL
from gputune.benches import _training_groups
from gputune.benches._networks import NETWORKS
from gputune.benches._training_groups import Trainee
from gputune.live.models import family

MANY_WORDS = {"classes": 4096}
"""As a GPU gets."""

pytestmark = pytest.mark.usefixtures("one_thread")


def trainee(name: str, seed: int = 0, **options: Any) -> Trainee:
    return Trainee(name, NETWORKS[name].cpu, "cpu", steps_with(**options), seed)


def test_there_is_one_for_each_family() -> None:
    assert tuple(NETWORKS) == FAMILIES


@pytest.mark.parametrize("name", NETWORKS)
def test_each_is_recognised_under_its_own_name(name: str) -> None:
    assert family(trainee(name).model) == name


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_has_finite_gradients_for_every_parameter_and_changes_them(
    name: str, precision: str, this_machine: Any
) -> None:
    if (name, precision) == ("recurrent", "bfloat16") and not this_machine.precision.cpu_bfloat16:
        pytest.skip("oneDNN has an LSTM in bfloat16 only where the CPU multiplies bfloat16")
    made = trainee(name, precision=precision)
    before = [parameter.detach().clone() for parameter in made.model.parameters()]
    loss = made.loss()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter.grad).all() for parameter in made.model.parameters())
    made.stepper(fused=False)[0]()
    changed = [not torch.equal(old, new) for old, new in zip(before, made.model.parameters(), strict=True)]
    assert all(changed)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_seed_is_the_same_network_with_the_same_data(name: str) -> None:
    first, again, other = trainee(name), trainee(name), trainee(name, seed=1)
    losses = [float(one.loss().detach()) for one in (first, again, other)]
    assert losses[0] == losses[1] != losses[2]
    again.next_batch()
    assert not torch.equal(first.inputs, again.inputs)


def fall(name: str, rate: float, **changes: Any) -> float:
    made = Trainee(name, replace(NETWORKS[name].cpu, **changes), "cpu", steps_with())
    step, _ = made.stepper(fused=False, rate=rate)
    losses = []
    for _ in range(_training_groups.GUARD_STEPS):
        made.next_batch()
        losses.append(float(step().detach()))
    return 1 - fmean(losses[-_training_groups.LAST :]) / losses[0]


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "changes"),
    [("mlp", 0.3, {}), ("convnet", None, {}), ("transformer", None, MANY_WORDS), ("recurrent", None, MANY_WORDS)],
)
def test_the_guards_training_learns_enough_to_compare_final_losses(name: str, rate: Any, changes: Any) -> None:
    """With few words, Zipf's law lets only a fifth of the loss be learned. The MLP's rate is for the width on a GPU."""
    assert fall(name, rate or NETWORKS[name].guard_rate, **changes) >= LEAST_FALL


class TestData:
    def batch(self, name: str) -> tuple[Any, Any, Any]:
        size = NETWORKS[name].cpu
        inputs, targets = NETWORKS[name].data(size, "cpu", torch.Generator().manual_seed(0))
        return size, inputs, targets

    def test_vectors_hold_eight_loud_numbers_that_are_to_be_repeated(self) -> None:
        size, inputs, targets = self.batch("mlp")
        assert inputs.shape == targets.shape == (size.batch, size.width)
        assert torch.equal(targets[:, :8], inputs[:, :8] / 16)
        assert torch.equal(targets[:, 8:16], targets[:, :8])
        assert float(inputs[:, 8:].std()) == pytest.approx(1, rel=0.1)

    def test_images_carry_the_pattern_of_their_class(self) -> None:
        size, inputs, labels = self.batch("convnet")
        assert inputs.shape == (size.batch, 3, size.length, size.length)
        assert set(labels.tolist()) <= set(range(size.classes))
        place = torch.arange(size.length) * (3.14159 / size.length)
        for image, label in zip(inputs, labels, strict=True):
            patterns = torch.stack([(place * (one + 1)).sin() for one in range(size.classes)])
            distances = (image.mean(dim=(0, 1)) - patterns).norm(dim=1)
            assert int(distances.argmin()) == int(label)

    @pytest.mark.parametrize("name", ["transformer", "recurrent"])
    def test_words_follow_zipfs_law_and_are_each_to_be_predicted(self, name: str) -> None:
        size, inputs, targets = self.batch(name)
        assert inputs.shape == targets.shape == (size.batch, size.length)
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
        assert int(inputs.min()) >= 0
        assert int(inputs.max()) < size.classes
        assert float((inputs < size.classes**0.5).float().mean()) == pytest.approx(0.5, abs=0.15)

    def test_only_images_have_a_memory_format(self) -> None:
        assert [name for name, network in NETWORKS.items() if network.images] == ["convnet"]
        last = trainee("convnet", channels_last=True)
        assert last.inputs.is_contiguous(memory_format=torch.channels_last)
        assert last.model[0].weight.is_contiguous(memory_format=torch.channels_last)
