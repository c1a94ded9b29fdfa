"""Whether outputs agree: numbers in, a verdict and its reason out."""

from dataclasses import replace

import pytest

from gputune.trials.agreement import LIMITS, Agreed, verdict
from gputune.trials.recorded import Precision

SOUND = Agreed(calls=20, error=0.003, spread=0.0, rows=320, agreeing=320, finite=True)


def test_what_agrees_is_accepted() -> None:
    found = verdict(SOUND, "bfloat16")
    assert (found.verdict, found.steps) == ("accepted", 20)
    assert found.reason == "outputs within 0.3 % of FP32's, the largest element the same in 320 of 320 rows"


def test_outputs_without_rows_have_only_an_error() -> None:
    assert verdict(replace(SOUND, rows=0, agreeing=0), "ieee").reason == "outputs within 0.3 % of FP32's"


@pytest.mark.parametrize("precision", LIMITS)
def test_each_precision_explains_an_error(precision: Precision) -> None:
    limit = LIMITS[precision]
    assert verdict(replace(SOUND, error=0.99 * limit), precision).verdict == "accepted"
    beyond = verdict(replace(SOUND, error=1.01 * limit), precision)
    assert beyond.verdict == "refused"
    assert beyond.reason.startswith("outputs of the same inputs differ by ")


def test_another_largest_element_is_refused_where_it_is_clear() -> None:
    found = verdict(replace(SOUND, agreeing=310), "bfloat16")
    assert found.verdict == "refused"
    assert found.reason == "the largest element is another one in 10 of 320 rows in which it is clear"


def test_one_row_in_a_thousand_may_differ() -> None:
    assert verdict(replace(SOUND, rows=2000, agreeing=1998), "bfloat16").verdict == "accepted"


def test_labels_may_differ_a_little_since_nobody_knows_how_clear_they_were() -> None:
    assert verdict(replace(SOUND, labels=64, same_labels=63), "bfloat16").verdict == "accepted"
    refused = verdict(replace(SOUND, labels=64, same_labels=50), "bfloat16")
    assert refused.reason == "14 of 64 whole numbers are others"


def test_other_shapes_are_refused() -> None:
    assert verdict(replace(SOUND, alike=False), "ieee").verdict == "refused"


def test_no_numbers_are_refused_whatever_else() -> None:
    assert verdict(replace(SOUND, finite=False, spread=0.5), "bfloat16").verdict == "refused"


def test_no_numbers_are_refused() -> None:
    assert verdict(replace(SOUND, finite=False), "bfloat16").reason == "an output is no number where FP32's is"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (replace(SOUND, calls=0, failed="TypeError: cannot be copied"), "TypeError: cannot be copied"),
        (replace(SOUND, calls=0), "no output was a tensor"),
        (replace(SOUND, spread=0.2), "two calls with the same inputs differ by 20 % without any settings"),
    ],
)
def test_where_nothing_is_known(found: Agreed, reason: str) -> None:
    unknown = verdict(found, "bfloat16")
    assert (unknown.verdict, unknown.reason) == ("unknown", reason)
