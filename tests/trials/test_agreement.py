"""Whether outputs agree: numbers in, a verdict and its reason out."""

from dataclasses import replace
from typing import Any

import pytest

from gputune.live.orders import OutputsCompared
from gputune.trials.agreement import verdict

SOUND = OutputsCompared(calls=20, error=0.003, spread=0.0, rows=320, agreeing=320, finite=True)


@pytest.mark.parametrize("limit", [0.005, 0.05])
def test_each_precision_explains_an_error(limit: float) -> None:
    assert verdict(replace(SOUND, error=0.99 * limit), limit).verdict == "accepted"
    beyond = verdict(replace(SOUND, error=1.01 * limit), limit)
    assert beyond.verdict == "refused"
    assert beyond.reason.startswith("outputs of the same inputs differ by ")


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        (
            {},
            "accepted",
            "outputs within 0.3 % of FP32's, the largest element the same in 320 of 320 rows in which it is clear",
        ),
        ({"rows": 0, "agreeing": 0}, "accepted", "outputs within 0.3 % of FP32's"),
        ({"rows": 2000, "agreeing": 1998}, "accepted", "outputs within 0.3 %"),
        ({"agreeing": 310}, "refused", "the largest element is another one in 10 of 320 rows in which it is clear"),
        ({"labels": 64, "same_labels": 63}, "accepted", "outputs within 0.3 %"),
        ({"labels": 64, "same_labels": 50}, "refused", "14 of 64 whole numbers are others"),
        ({"alike": False}, "refused", "outputs of the same inputs have another number or shape"),
        ({"finite": False}, "refused", "an output is no number where FP32's is"),
        ({"finite": False, "spread": 0.5}, "refused", "an output is no number where FP32's is"),
        ({"calls": 0, "failed": "TypeError: cannot be copied"}, "unknown", "TypeError: cannot be copied"),
        ({"calls": 0}, "unknown", "no output was a tensor"),
        ({"spread": 0.2}, "unknown", "two calls with the same inputs differ by 20 % without any settings"),
    ],
)
def test_the_verdict_and_its_reason(changes: dict[str, Any], outcome: str, reason: str) -> None:
    found = verdict(replace(SOUND, **changes), 0.05)
    assert (found.verdict, found.reason[: len(reason)]) == (outcome, reason)
    assert found.steps == changes.get("calls", 20)
