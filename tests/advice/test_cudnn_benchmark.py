"""cuDNN's own search: chosen only where it gains, and never against deterministic mode."""

from typing import Any

import pytest
from making import row, steps, steps_with
from recorded import facts_of

from gputune.advice._training import best
from gputune.advice.cudnn_benchmark import recommend

H200 = facts_of()


def convnet(on: float, off: float, memory: float | None = 1.02) -> list[Any]:
    chosen = {"precision": "bfloat16", "channels_last": True}
    rates = {steps_with(**chosen, cudnn_benchmark=True): on, steps_with(**chosen): off}
    taken = row("training_step", "search_time", 0.75, network="convnet", stage="options")
    peaks = [
        row("training_step", "peak_memory", mebibytes, network="convnet", stage="options", **searching)
        for mebibytes, searching in ((1000.0, {}), (1000.0 * (memory or 0.0), {"cudnn_benchmark": True}))
    ]
    return [taken, *(peaks if memory else []), *steps("convnet", rates, "options")]


def test_the_steps_of_a_convnet_decide() -> None:
    choice = recommend(H200, convnet(130.0, 100.0))
    assert (choice.value, choice.gain) == (True, pytest.approx(1.3))
    what = "steps of a convnet with cuDNN's own search, the first of which took 0.753 s, ran 1.3 times (1.3 to 1.3)"
    assert choice.reason == f"{what} as fast as with torch's default, with 1.02 times the peak memory"
    assert choice.evidence == ("training_step",)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (convnet(109.0, 100.0), "not certain to gain the tenth that a search is worth: steps"),
        (convnet(130.0, 100.0, memory=None), "its peak memory is not known: steps"),
        (convnet(130.0, 100.0, memory=3.0), "it takes 3 times the peak memory of a convnet's steps"),
    ],
)
def test_it_must_gain_a_tenth_with_its_memory_looked_at(rows: list[Any], why: str) -> None:
    choice = recommend(H200, rows)
    assert choice.value is False
    assert choice.reason.startswith(why)
    assert best(rows, "convnet") == steps_with("bfloat16", channels_last=True)


def test_steps_that_gain_nothing_keep_torchs_default() -> None:
    choice = recommend(H200, convnet(101.0, 100.0))
    assert (choice.value, choice.gain) == (False, pytest.approx(1.01))
    assert choice.reason.startswith("no gain: steps of a convnet")
