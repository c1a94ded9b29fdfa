"""The numerical error that tells TF32 and bfloat16 from full FP32, whatever the flags say."""

from typing import Any

import pytest
import torch

from gputune.benches import _fp32_errors
from gputune.settings.matmul_precision import TF32_ERROR


@pytest.mark.slow
def test_full_fp32_is_exact_to_a_millionth() -> None:
    errors = _fp32_errors.errors("cpu")
    assert set(errors) == {"matmul", "conv", "conv channels_last", "lstm"}
    assert all(0 < error < 1e-6 for error in errors.values())


def in_bfloat16(made: Any) -> Any:
    """As a product whose factors were rounded."""
    return lambda x, w, *rest, **more: made(x.bfloat16().to(x), w.bfloat16().to(w), *rest, **more)


@pytest.mark.slow
def test_factors_that_were_rounded_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    convolve = torch.nn.functional.conv2d

    def rounding(x: Any, w: Any, **more: Any) -> Any:
        return (convolve if x.dtype == torch.float64 else in_bfloat16(convolve))(x, w, **more)

    monkeypatch.setattr(torch.nn.functional, "conv2d", rounding)
    errors = _fp32_errors.errors("cpu")
    assert all(errors[name] > TF32_ERROR for name in ("conv", "conv channels_last"))
    assert errors["matmul"] < TF32_ERROR


@pytest.mark.slow
def test_it_always_looks_at_the_same_numbers_and_leaves_the_users_generator_alone() -> None:
    before = torch.random.get_rng_state()
    assert _fp32_errors.errors("cpu") == _fp32_errors.errors("cpu")
    assert torch.equal(torch.random.get_rng_state(), before)
