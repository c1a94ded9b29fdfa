"""Attention's first back end: changed only where one gains over torch's own choice at every shape, and with the others
left.
"""

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.advice.sdpa_backend import recommend

H200 = facts_of()
SHAPES = ((64, 1.0), (128, 2.0))


def measured(dtype: str = "bfloat16", shapes: Any = SHAPES, **rates: float) -> list[Any]:
    return [
        row(
            "attention", "throughput", rate * scale,
            dtype=dtype, head=head, length=4096, causal=True, backend=backend,
        )
        for backend, rate in rates.items()
        for head, scale in shapes
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "value", "reason"),
    [
        (
            {"flash": 90.0, "cudnn": 150.0},
            "cudnn",
            "cudnn ran 1.5 times (1.5 to 1.5) as fast as torch's own choice in ",
        ),
        ({"flash": 130.0, "cudnn": 150.0, "efficient": 110.0}, "cudnn", "cudnn ran 1.5 times"),
        ({"flash": 60.0, "efficient": 25.0, "cudnn": 99.8}, None, "torch's own choice is already the best: cudnn ran "),
        ({"cudnn": 100.0}, None, "torch's own choice is already the best: "),
        ({"cudnn": 102.0}, None, "no gain: "),
    ],
)
def test_the_best_is_taken_if_it_gains_over_all_shapes(rates: dict[str, float], value: str | None, reason: str) -> None:
    choice = recommend(H200, measured(default=100.0, **rates))
    assert choice.value == value
    assert choice.gain == pytest.approx(rates["cudnn"] / 100, rel=0.01)
    assert choice.reason.startswith(reason)
    assert choice.evidence == ("attention",)


def test_a_back_end_that_refused_a_shape_is_no_candidate() -> None:
    rows = [*measured(default=100.0, flash=101.0), *measured(shapes=SHAPES[:1], cudnn=200.0)]
    choice = recommend(H200, rows)
    assert choice.value is None
    assert "flash" in choice.reason


def test_shapes_are_paired_by_what_they_are_and_not_by_their_order() -> None:
    rows = [*measured(default=100.0), *measured(shapes=SHAPES[::-1], flash=100.0)]
    assert recommend(H200, rows).gain == pytest.approx(1.0)


def test_where_every_other_refused_that_is_the_reason() -> None:
    choice = recommend(H200, measured(default=100.0))
    assert choice.value is None
    assert choice.reason == "no other back end ran at every shape that torch's own choice was measured at"


def test_the_dtype_of_training_decides() -> None:
    both = [*measured(default=100.0, flash=100.0), *measured("float16", default=100.0, flash=200.0)]
    assert recommend(H200, both).value is None
    assert recommend(H200, measured("float16", default=100.0, flash=200.0)).value == "flash"


def test_too_few_samples_decide_nothing() -> None:
    from dataclasses import replace

    rows = [replace(one, samples=one.samples[:3]) for one in measured(default=100.0, flash=200.0)]
    choice = recommend(H200, rows)
    assert (choice.value, choice.reason) == (None, "too few samples in this run to tell")
