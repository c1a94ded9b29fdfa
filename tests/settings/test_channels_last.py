"""Convolutions in channels_last: measured in the dtype that the recommended network runs in."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.channels_last import recommend

H200 = facts_of()


def convolutions(dtype: str, last: float, first: float, aligned: bool = True) -> list[Any]:
    return [
        row("conv", "throughput", rate, dtype=dtype, channels=channels, channels_last=layout, aligned=aligned)
        for layout, rate in ((True, last), (False, first))
        for channels in (64, 256)
    ]


def mixed(bfloat16: float) -> list[Any]:
    return [
        row("precision", "throughput", rate, dtype=dtype) for dtype, rate in (("float32", 51.0), ("bfloat16", bfloat16))
    ]


def test_a_gain() -> None:
    choice = recommend(H200, convolutions("tf32", 185.0, 100.0))
    assert choice.value is True
    assert choice.gain == pytest.approx(1.85, rel=0.01)
    assert choice.reason.startswith("tf32 convolutions of 64, 256 channels in channels_last ran 1.85 times")


def test_no_gain() -> None:
    choice = recommend(H200, convolutions("tf32", 100.0, 100.0))
    assert choice.value is False
    assert choice.reason.startswith("no gain: ")


def test_the_dtype_of_the_recommended_network_decides() -> None:
    both = convolutions("tf32", 185.0, 100.0) + convolutions("bfloat16", 90.0, 100.0)
    assert recommend(H200, both + mixed(bfloat16=700.0)).value is False
    assert recommend(H200, both + mixed(bfloat16=51.0)).value is True


def test_odd_channel_counts_do_not_decide() -> None:
    rows = convolutions("tf32", 185.0, 100.0) + convolutions("tf32", 50.0, 100.0, aligned=False)
    assert recommend(H200, rows).value is True


@pytest.mark.parametrize("rows", [[], convolutions("tf32", 185.0, 100.0)[:2], convolutions("tf32", 185.0, 100.0)[:3]])
def test_not_measured(rows: list[Any]) -> None:
    choice = recommend(H200, rows)
    assert (choice.value, choice.gain) == (False, None)
