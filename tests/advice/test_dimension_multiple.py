"""What dimensions are padded to: the smallest multiple from which on nothing more is gained, for each dtype."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.advice.dimension_multiple import recommend

H200 = facts_of()

FAST = {1: 100.0, 2: 100.0, 4: 100.0, 8: 100.0, 16: 100.0}
BASE = 4096


def measured(
    dtype: str, dim: str, rates: Mapping[int, float], product: str = "forward", full: float | None = None
) -> list[Any]:
    """Sizes a little above a power of two by their multiple, and that power itself."""
    rows = [
        row(
            "matmul_alignment", "throughput", rate * (BASE + multiple),
            dtype=dtype, product=product, dim=dim, size=BASE + multiple, multiple=multiple,
        )
        for multiple, rate in rates.items()
    ]  # fmt: skip
    if full is None:
        return rows
    exact = {"dtype": dtype, "product": product, "dim": dim, "size": BASE, "multiple": 128, "full_tiles": True}
    return [*rows, row("matmul_alignment", "throughput", full * BASE, **exact)]


def test_up_to_where_it_pays() -> None:
    rows = measured("bfloat16", "N", FAST | {1: 20.0, 2: 50.0, 4: 70.0}) + measured("bfloat16", "K", FAST)
    choice = recommend(H200, rows)
    assert choice.value == {"bfloat16": 8}
    assert choice.gain == pytest.approx(5.0, rel=0.02)
    assert "N in multiples of 8" in choice.reason
    assert "any K" in choice.reason


def slow(*multiples: int) -> dict[int, float]:
    return FAST | dict.fromkeys(multiples, 50.0)


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        (measured("float16", "N", slow(1)) + measured("float16", "K", slow(1, 2)), {"float16": 4}),
        (measured("bfloat16", "N", slow(1, 2, 4)) + measured("tf32", "N", slow(1, 2)), {"bfloat16": 8, "tf32": 4}),
        (measured("bfloat16", "M", slow(1)) + measured("bfloat16", "N", FAST), {"bfloat16": 1}),
        (measured("bfloat16", "N", slow(4)), {"bfloat16": 1}),
        (measured("bfloat16", "N", {16: 100.0}), {}),
        (
            measured("bfloat16", "N", slow(1)) + measured("bfloat16", "N", slow(1, 2, 4), product="grad_weight"),
            {"bfloat16": 8},
        ),
    ],
    ids=[
        "the stricter of N and K",
        "each dtype",
        "not the batch",
        "no slow one by chance",
        "a single size",
        "products",
    ],
)
def test_the_multiple_of_each_dtype(rows: list[Any], value: dict[str, int]) -> None:
    assert recommend(H200, rows).value == value


@pytest.mark.parametrize(("rate", "multiple"), [(98.0, 1), (96.0, 1), (94.0, 2)])
def test_five_percent_are_worth_a_changed_shape(rate: float, multiple: int) -> None:
    assert recommend(H200, measured("bfloat16", "N", FAST | {1: rate})).value == {"bfloat16": multiple}


def test_nothing_is_gained_where_no_padding_helps() -> None:
    choice = recommend(H200, measured("bfloat16", "N", FAST))
    assert (choice.value, choice.gain) == ({"bfloat16": 1}, 1.0)
    assert choice.reason == "bfloat16: any N"


def test_a_last_tile_that_is_full_is_no_alignment() -> None:
    """The power of two needs a tile less, so it is faster than any other size, however aligned."""
    choice = recommend(H200, measured("bfloat16", "N", FAST | {1: 50.0}, full=150.0))
    assert choice.value == {"bfloat16": 2}
    assert choice.gain == pytest.approx(2.0)


def test_sizes_of_as_many_tiles_are_compared_by_time_and_not_by_work() -> None:
    """128 columns more of 512 are a quarter more work, which fills the same tiles."""
    rows = [
        row(
            "matmul_alignment", "throughput", float(size),
            dtype="float32", product="forward", dim="N", size=size, multiple=multiple,
        )
        for multiple, size in ((1, 513), (128, 640))
    ]  # fmt: skip
    assert recommend(H200, rows).value == {"float32": 1}


def test_a_size_that_is_no_clear_winner_among_too_few_samples_decides_nothing() -> None:
    rows = [replace(one, samples=one.samples[:7]) for one in measured("bfloat16", "N", FAST | {1: 50.0})]
    assert recommend(H200, rows).value == {}
    assert recommend(H200, rows).reason == "too few samples in this run to tell"
