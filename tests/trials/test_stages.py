"""Which combinations each stage of a search compares."""

import pytest

from gputune.inject.loading import WORKERS
from gputune.settings import Value
from gputune.trials.combination import DEFAULT, Combination
from gputune.trials.search import options, precisions, to_compile

ALL: dict[str, Value] = {
    "matmul_precision": "tf32", "amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True,
    "cudnn_benchmark": True, "sdpa_backend": "flash", "compile": True,
}  # fmt: skip


def words(combinations: list[Combination]) -> list[str]:
    return [str(one) for one in combinations]


def test_precisions_are_compared_in_both_memory_formats() -> None:
    assert words(precisions(DEFAULT, ALL, images=True)) == [
        "tf32", "bfloat16", "bfloat16 + tf32",
        "channels_last", "channels_last + tf32", "bfloat16 + channels_last", "bfloat16 + channels_last + tf32",
    ]  # fmt: skip


def test_without_images_in_one() -> None:
    assert words(precisions(DEFAULT, ALL, images=False)) == ["tf32", "bfloat16", "bfloat16 + tf32"]


def test_all_of_them_begin_with_what_was_found_before() -> None:
    start = Combination.of({WORKERS: 4})
    assert words(precisions(start, {"matmul_precision": "tf32"}, images=False)) == ["4 workers + tf32"]


def test_options_are_compared_beside_the_fused_optimizer() -> None:
    assert words(options(DEFAULT, ALL)) == [
        "fused_optimizer", "cudnn_benchmark + fused_optimizer", "fused_optimizer + flash",
    ]  # fmt: skip


def test_without_one_each_by_itself() -> None:
    candidates: dict[str, Value] = {"cudnn_benchmark": True, "omp_threads": 2}
    assert words(options(DEFAULT, candidates)) == ["cudnn_benchmark", "2 threads"]


TF32: dict[str, Value] = {"matmul_precision": "tf32"}
HALF: dict[str, Value] = {"amp_dtype": "bfloat16"}


@pytest.mark.parametrize(("light", "first"), [(HALF, HALF | TF32), (HALF | TF32, HALF | TF32), (TF32, TF32), ({}, {})])
def test_mixed_precision_is_compiled_with_tf32(light: dict[str, Value], first: dict[str, Value]) -> None:
    """Where the two are known to fail together, mixed precision is compiled alone, which is the last."""
    found = [one.values for one in to_compile(Combination.of(light), ALL)]
    assert found[0] == first
    assert found[-1] == light


def test_without_tf32_as_it_is() -> None:
    assert words(to_compile(Combination.of(HALF), HALF)) == ["bfloat16"]
