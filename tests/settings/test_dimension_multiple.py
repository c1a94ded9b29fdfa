"""What dimensions are padded to: the smallest multiple from which on nothing more is gained, for each dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dimension_multiple import recommend

H200 = facts_of()

FAST = {1: 100.0, 2: 100.0, 4: 100.0, 8: 100.0, 16: 100.0}


def measured(dtype: str, dim: str, rates: Mapping[int, float]) -> list[Any]:
    return [row("matmul_alignment", "throughput", rate, dtype=dtype, dim=dim, multiple=m) for m, rate in rates.items()]


def test_up_to_where_it_pays() -> None:
    rows = measured("bfloat16", "N", FAST | {1: 20.0, 2: 50.0, 4: 70.0}) + measured("bfloat16", "K", FAST)
    choice = recommend(H200, rows)
    assert choice.value == {"bfloat16": 8}
    assert choice.gain == pytest.approx(5.0, rel=0.02)
    assert "N in multiples of 8" in choice.reason
    assert "K free" in choice.reason


def test_the_stricter_of_n_and_k_holds() -> None:
    rows = measured("float16", "N", FAST | {1: 50.0}) + measured("float16", "K", FAST | {1: 50.0, 2: 50.0})
    assert recommend(H200, rows).value == {"float16": 4}


def test_each_dtype_has_its_own() -> None:
    rows = measured("bfloat16", "N", FAST | {1: 50.0, 2: 50.0, 4: 50.0}) + measured(
        "tf32", "N", FAST | {1: 50.0, 2: 50.0}
    )
    assert recommend(H200, rows).value == {"bfloat16": 8, "tf32": 4}


def test_the_batch_is_not_padded_though_it_matter() -> None:
    rows = measured("bfloat16", "M", FAST | {1: 50.0}) + measured("bfloat16", "N", FAST)
    assert recommend(H200, rows).value == {"bfloat16": 1}


def test_a_few_percent_are_not_worth_a_changed_shape() -> None:
    choice = recommend(H200, measured("bfloat16", "N", FAST | {1: 94.0}))
    assert choice.value == {"bfloat16": 1}
    assert choice.gain is None


def test_one_bad_size_in_the_middle_is_padded_beyond() -> None:
    assert recommend(H200, measured("bfloat16", "N", FAST | {4: 50.0})).value == {"bfloat16": 8}


def test_not_measured() -> None:
    choice = recommend(H200, [])
    assert (choice.value, choice.gain) == ({}, None)
    assert recommend(H200, measured("bfloat16", "N", {16: 100.0})).value == {}
