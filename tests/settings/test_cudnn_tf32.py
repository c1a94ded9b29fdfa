"""FP32 convolutions in TF32: torch's default, left unless full FP32 is the faster one."""

from typing import Any

import pytest
import torch_child
from making import row
from recorded import facts_of

from gputune.settings.cudnn_tf32 import recommend

H200 = facts_of()


def measured(tf32: float, float32: float) -> list[Any]:
    return [
        row("conv", "throughput", tf32, dtype="tf32", channels=128, channels_last=True),
        row("conv", "throughput", float32, dtype="float32", channels=128, channels_last=True),
        row("conv", "relative_error", 2.9e-4, dtype="tf32"),
    ]


@pytest.mark.parametrize("tf32", [300.0, 51.0])
def test_torchs_default_stays_with_what_it_gives_and_costs(tf32: float) -> None:
    choice = recommend(H200, measured(tf32, 50.0))
    assert choice.value is True
    assert choice.reason.startswith("torch's default: full FP32 convolution ran at ")
    assert choice.gain == pytest.approx(50 / tf32, rel=0.01)
    assert choice.reason.endswith("relative error 2.9e-04")


def test_where_full_fp32_is_faster_it_is_chosen() -> None:
    choice = recommend(H200, measured(40.0, 50.0))
    assert choice.value is False
    assert choice.gain == pytest.approx(1.25, rel=0.01)
    assert choice.reason.startswith("full FP32 convolution ran at ")


def test_a_difference_below_the_rule_changes_nothing() -> None:
    assert recommend(H200, measured(49.0, 50.0)).value is True


def test_an_override_that_forbids_tf32_is_told_by_the_error() -> None:
    rows = [*measured(50.0, 50.0)[:2], row("conv", "relative_error", 4.3e-7, dtype="tf32")]
    choice = recommend(H200, rows)
    assert choice.value is True
    assert "NVIDIA_TF32_OVERRIDE" in choice.reason


@pytest.mark.parametrize("missing", range(2))
def test_not_measured_is_torchs_default(missing: int) -> None:
    rows = measured(40.0, 50.0)
    del rows[missing]
    choice = recommend(H200, rows)
    assert (choice.value, choice.gain) == (True, None)


def test_convolutions_and_rnns_set_apart_are_nobodys_value() -> None:
    answer = torch_child.ask("""
from gputune.settings import cudnn_tf32 as setting
if hasattr(torch._C, "_get_fp32_precision_getter"):
    torch.backends.cudnn.rnn.fp32_precision = "ieee"
    answer = setting.current()
""")
    assert answer is None
