"""cuDNN's own search and channels_last go off in a model that is called with many shapes."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hands_on import rooted
from torch import nn

from gputune.live import flags
from gputune.live.installer import Installer
from gputune.live.nets import later_settings
from gputune.live.nets.varying_shapes import MOST, VaryingShapes, images

WHY = "the shapes of its inputs vary"


class Turned:
    """A model with both settings on, and what was said as they were turned off."""

    def __init__(self, seen: Sequence[int] = ()) -> None:
        """`seen` are the sizes of images in the watched step."""
        self.model, self.said = nn.Conv2d(2, 2, 3), list[str]()
        root = rooted(self.model, failed=lambda names, why: self.said.append(f"{' '.join(names)}: {why}"))
        root.say, root.seen.images = self.said.append, {images(image(size)) for size in seen}
        installer = Installer([root], guarded=True)
        assert installer.obstacles({"channels_last": True}) == {}
        installer.switch({"channels_last": True})
        root.call.suspects.nets.append(VaryingShapes(root))

    def call(self, *sizes: int, gradients: bool = True) -> list[str]:
        with torch.set_grad_enabled(gradients):
            for size in sizes:
                self.model(image(size))
        return self.said

    @property
    def are_on(self) -> tuple[bool, bool]:
        is_last = self.model.weight.is_contiguous(memory_format=torch.channels_last)
        return torch.backends.cudnn.benchmark, is_last


def image(size: int) -> torch.Tensor:
    return torch.ones(1, 2, size, 3)


@pytest.fixture(autouse=True)
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    monkeypatch.setattr(flags, "rows", {})
    monkeypatch.setattr(flags, "_ours", {})
    monkeypatch.setattr(later_settings, "_flags", {})
    flags.set_now("cudnn_benchmark", True)


def test_the_first_call_tells_that_shapes_vary_from_the_start() -> None:
    turned = Turned(seen=[3, 4])
    assert turned.call(5) == [f"cudnn_benchmark turned off: {WHY} in Conv2d", f"channels_last: {WHY}"]
    assert turned.are_on == (False, False)
    assert flags.rows["cudnn_benchmark"].status == "skipped"


def test_a_few_shapes_are_those_of_training_of_evaluation_and_of_their_last_batches() -> None:
    turned = Turned(seen=[3])
    assert turned.call(3, 4) == turned.call(5, 6, gradients=False) == []
    assert turned.are_on == (True, True)


@pytest.mark.parametrize("gradients", [True, False])
def test_many_turn_them_off_in_training_and_in_evaluation(gradients: bool) -> None:
    turned = Turned(seen=[3])
    assert turned.call(3, *range(4, 3 + MOST), gradients=gradients) == []
    turned.call(3 + MOST, gradients=gradients)
    assert turned.are_on == (False, False)


def test_what_is_no_image_may_vary() -> None:
    boxes = [torch.ones(number, 4) for number in (1, 2)]
    assert images((image(3), boxes[0], 1)) == images((image(3), boxes[1], 2)) != images((image(4), boxes[0], 1))


def test_without_images_all_shapes_count() -> None:
    assert images((torch.ones(2, 4, dtype=torch.int64),)) != images((torch.ones(2, 5, dtype=torch.int64),))
