"""The numerical error that tells TF32 and bfloat16 from full FP32, whatever the flags say."""

import pytest
import torch

from gputune.benches import _fp32_errors
from gputune.settings.matmul_precision import TF32_ERROR


@pytest.mark.slow
def test_full_fp32_is_exact_to_a_millionth() -> None:
    errors = _fp32_errors.errors("cpu")
    assert set(errors) == {"matmul", "conv", "conv channels_last", "lstm"}
    assert all(0 < error < 1e-6 for error in errors.values())


def test_factors_that_were_rounded_are_found_out() -> None:
    x, w = torch.randn(2, 512, 512, generator=torch.Generator().manual_seed(0))
    rounded = (x.bfloat16().float() @ w.bfloat16().float()).double()
    assert _fp32_errors.relative_error(rounded, x.double() @ w.double()) > TF32_ERROR


@pytest.mark.slow
def test_it_always_looks_at_the_same_numbers_and_leaves_the_users_generator_alone() -> None:
    before = torch.random.get_rng_state()
    assert _fp32_errors.errors("cpu") == _fp32_errors.errors("cpu")
    assert torch.equal(torch.random.get_rng_state(), before)
