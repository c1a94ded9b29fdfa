"""The channels_last format: decided by a convnet's steps, else by convolutions in the dtype that it runs in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from making import final_losses, precisions, row, steps, steps_with
from recorded import facts_of

from gputune.advice.channels_last import of_family, recommend

H200 = facts_of()


def convolutions(
    dtype: str, last: float, first: float, channels: Sequence[int] = (64, 256), **changes: Any
) -> list[Any]:
    params = {"dtype": dtype, "kernel": "3x3", "pass": "forward", **changes}
    return [
        row("conv", "throughput", rate, channels=count, channels_last=layout, **params)
        for layout, rate in ((True, last), (False, first))
        for count in channels
    ]


@pytest.mark.parametrize(("last", "value", "words"), [(185.0, True, ""), (100.0, False, "no gain: ")])
def test_convolutions_decide(last: float, value: bool, words: str) -> None:
    choice = recommend(H200, convolutions("tf32", last, 100.0))
    assert choice.value is value
    assert choice.gain == pytest.approx(last / 100, rel=0.01)
    assert choice.reason.startswith(f"{words}tf32 convolutions of 64, 256 channels in channels_last ran")


def test_of_convolutions_those_decide_that_were_measured_in_both_formats() -> None:
    both = convolutions("tf32", 185.0, 100.0) + convolutions("bfloat16", 90.0, 100.0)
    assert recommend(H200, both).value is True
    one = [row for row in both if row.params["dtype"] == "bfloat16" or row.params["channels_last"]]
    assert recommend(H200, one).value is False


@pytest.mark.parametrize(
    "other",
    [
        {"channels": (63, 65)},
        {"channels": (4,), "out": 64},
        {"out": 63},
        {"kernel": "1x1"},
        {"kernel": "depthwise 3x3"},
        {"pass": "training"},
        {"cudnn_benchmark": True},
    ],
)
def test_only_plain_forward_passes_of_aligned_channels_decide(other: dict[str, Any]) -> None:
    rows = convolutions("tf32", 185.0, 100.0)
    assert recommend(H200, rows + convolutions("tf32", 50.0, 100.0, **other)) == recommend(H200, rows)


@pytest.mark.parametrize("rows", [[], convolutions("tf32", 185.0, 100.0)[:2], convolutions("tf32", 185.0, 100.0)[:3]])
def test_not_measured(rows: list[Any]) -> None:
    choice = recommend(H200, rows)
    assert (choice.value, choice.gain) == (False, None)


def test_steps_too_few_to_tell_leave_it_to_the_convolutions() -> None:
    few = [replace(one, samples=one.samples[:7]) for one in convnet(100.0, 100.0)]
    assert of_family(H200, few, "convnet") is None
    assert recommend(H200, convolutions("tf32", 185.0, 100.0) + few).value is True


def convnet(last: float, first: float, precision: str = "bfloat16") -> list[Any]:
    plain = steps_with(precision)
    return steps("convnet", {plain: first, plain.plus("channels_last", True): last})


def test_the_steps_of_a_convnet_come_before_convolutions() -> None:
    choice = recommend(H200, convolutions("tf32", 50.0, 100.0) + convnet(last=200.0, first=100.0))
    assert choice == of_family(H200, convnet(last=200.0, first=100.0), "convnet")
    assert (choice.value, choice.gain) == (True, pytest.approx(2.0))
    assert choice.reason == "steps of a convnet in channels_last ran 2 times (2 to 2) as fast as with torch's default"
    assert choice.evidence == ("training_step",)


def test_steps_that_gain_nothing() -> None:
    choice = recommend(H200, convnet(last=101.0, first=100.0))
    assert (choice.value, choice.gain) == (False, pytest.approx(1.01))
    assert choice.reason.startswith("no gain: ")


def test_it_is_told_in_the_precision_that_the_guard_left() -> None:
    rows = convnet(50.0, 60.0, "tf32") + convnet(400.0, 100.0)
    assert recommend(H200, rows).value is True
    assert recommend(H200, rows + final_losses("convnet", 1.0, 1.1, bfloat16=1.5)).value is False


def test_networks_without_images_have_no_choice() -> None:
    assert of_family(H200, precisions("mlp", float32=1.0, bfloat16=2.0), "mlp") is None
    assert of_family(H200, [], "convnet") is None
