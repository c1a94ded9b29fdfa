"""Several models have one row of each setting between them."""

from typing import Any

from gputune.inject import decision
from gputune.inject.applied import Applied, Reason
from gputune.inject.outcome import Outcome, left

LEFT = left("amp_dtype", "its parameters are float16")
FAILED = decision.failed("amp_dtype", "its call failed with it: RuntimeError: dtype")


def remembered(*rows: Applied) -> Applied:
    outcome = Outcome(["amp_dtype"], Reason.NO_STEP())
    for row in rows:
        outcome.add(row)
    return outcome.rows["amp_dtype"]


def put(model: str, *more: Any) -> Applied:
    reasons = (Reason.PUT_IN(model), *more)
    return Applied(setting="amp_dtype", after="bfloat16", status="applied", source="profile", reasons=reasons)


def test_what_is_expected_has_a_row_before_anything_is_known() -> None:
    assert remembered().why == "no optimizer took two steps"


def test_what_is_known_of_a_model_is_not_replaced_by_why_nothing_was_found() -> None:
    outcome = Outcome(["amp_dtype", "compile"], Reason.NO_STEP())
    outcome.add(put("A"))
    outcome.nothing(Reason.NO_MODEL())
    assert [row.status for row in outcome.rows.values()] == ["applied", "skipped"]
    assert outcome.rows["compile"].because(Reason.NO_MODEL) == ()


def test_what_the_program_does_itself_is_the_users() -> None:
    row = left("compile", "the program compiles it itself", users=True)
    assert (row.status, row.source) == ("kept-user", "program")


def test_the_models_it_was_put_into_are_named_once() -> None:
    row = remembered(put("A"), put("B"), put("A"))
    assert (row.status, row.why) == ("applied", "put into A, B")


def test_it_is_applied_where_any_model_has_it_whatever_the_order() -> None:
    for rows in ([put("A"), LEFT], [LEFT, put("A")]):
        row = remembered(*rows)
        assert (row.status, row.after, row.source) == ("applied", "bfloat16", "profile")
        assert row.why == "put into A; its parameters are float16"


def test_reasons_are_given_once() -> None:
    why = "bfloat16 instead of float16, which needs a loss scaler"
    row = remembered(put("A", why), put("B", why), LEFT, LEFT)
    assert row.reasons == (Reason.PUT_IN("A", "B"), why, *LEFT.reasons)


def test_a_failure_in_another_model_is_kept() -> None:
    assert remembered(FAILED, put("A")).why == f"put into A; {FAILED.why}"
