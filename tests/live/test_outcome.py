"""The outcome of each setting in several models: one row, and the line that tells it."""

from typing import Any

import pytest
from hands_on import convnet, mlp, rooted

from gputune.live import flags
from gputune.live.advice import TunedProgram
from gputune.live.applied import Applied, Reason
from gputune.live.outcome import Outcome, left, line

LEFT = left("amp_dtype", "its parameters are float16")
NOT_FOR_IT = left("amp_dtype", Reason.NO_IMAGES())
INSTEAD = "bfloat16 instead of float16, which needs a loss scaler"
FAILED = flags.failed("amp_dtype", "its call failed with it: RuntimeError: dtype")


def remembered(*rows: Applied) -> Applied:
    """The row of models with these rows: what was not put in is of the model Other."""
    outcome = Outcome(["amp_dtype"], Reason.NO_STEP())
    models = [(row, mlp()) for row in rows]
    for row, model in models:
        outcome.add(row, model, ", ".join(row.because(Reason.PUT_IN) or ["Other"]))
    return outcome.rows["amp_dtype"]


def put(model: str, *more: str, name: str = "amp_dtype", value: Any = "bfloat16") -> Applied:
    reasons = (Reason.PUT_IN(model), *more)
    return Applied(setting=name, after=value, status="applied", source="profile", reasons=reasons)


def test_what_is_expected_has_a_row_before_anything_is_known() -> None:
    assert remembered().why == "no optimizer took two steps"


def test_what_is_known_of_a_model_is_not_replaced_by_why_nothing_was_found() -> None:
    outcome = Outcome(["amp_dtype", "compile"], Reason.NO_STEP())
    outcome.add(put("A"), mlp(), "A")
    outcome.nothing(Reason.NO_MODEL())
    assert [row.status for row in outcome.rows.values()] == ["applied", "skipped"]
    assert outcome.rows["compile"].because(Reason.NO_MODEL) == ()


def test_what_the_program_does_itself_is_the_users() -> None:
    row = left("compile", "the program compiles it itself", users=True)
    assert (row.status, row.source) == ("kept-user", "program")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ((put("A"), put("B"), put("A")), "put into A, B"),
        ((put("A"), LEFT), "put into A; not into Other: its parameters are float16"),
        ((LEFT, put("A")), "put into A; not into Other: its parameters are float16"),
        ((put("A"), NOT_FOR_IT), "put into A"),
        ((LEFT, NOT_FOR_IT, put("A")), "put into A; not into Other: its parameters are float16"),
        (
            (put("A", INSTEAD), LEFT, put("B", INSTEAD), LEFT),
            f"put into A, B; {INSTEAD}; not into Other: its parameters are float16",
        ),
        ((FAILED, put("A")), f"put into A; not into Other: {FAILED.why}"),
    ],
)
def test_it_is_applied_where_any_model_has_it_and_reasons_against_it_name_their_model(
    rows: tuple[Applied], why: str
) -> None:
    row = remembered(*rows)
    assert (row.status, row.after, row.source, row.why) == ("applied", "bfloat16", "profile", why)


@pytest.mark.parametrize(
    ("is_same", "first", "then", "why"),
    [
        (True, LEFT, put("A"), ""),
        (True, put("A"), LEFT, "; not into A: its parameters are float16"),  # since it has another optimizer
        (False, LEFT, put("A"), "; not into another A: its parameters are float16"),
    ],
)
def test_why_a_model_did_not_have_it_is_not_said_once_it_has_it(
    is_same: bool, first: Applied, then: Applied, why: str
) -> None:
    outcome, model, other = Outcome((), ""), mlp(), mlp()
    outcome.add(first, model, "A")
    outcome.add(then, model if is_same else other, "A")
    assert outcome.rows["amp_dtype"].why == f"put into A{why}"


def test_what_is_said_of_a_model_that_is_gone_stays() -> None:
    outcome = Outcome((), "")
    for row in (LEFT, *[put("A")] * 20):
        outcome.add(row, mlp(), "A")  # where the last one was
    assert outcome.rows["amp_dtype"].why == f"put into A; not into another A: {LEFT.why}"


def test_without_a_model_that_has_it_reasons_are_as_they_were() -> None:
    assert remembered(LEFT, NOT_FOR_IT, LEFT).why == "its parameters are float16; it has no 2-d convolutions"


def told(*rows: Applied, models: Any = None, tuned: TunedProgram | None = None) -> str:
    found = [rooted(model) for model in (models or [mlp()])]
    for root in found:
        root.seen.shapes.append((2, 4))
    return line({row.setting: row for row in rows}, found, tuned)


COMPILED, HALF = put("Sequential", name="compile", value=True), put("Sequential")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "nothing put into Sequential (mlp): the profile has nothing for it here"),
        ((HALF, COMPILED), "put into Sequential (mlp): amp_dtype bfloat16, compile"),
        ((COMPILED, LEFT), f"put into Sequential (mlp): compile; left: amp_dtype ({LEFT.why})"),
        ((LEFT,), f"nothing put into Sequential (mlp); left: amp_dtype ({LEFT.why})"),
        ((COMPILED, left("channels_last", Reason.NO_IMAGES())), "put into Sequential (mlp): compile"),
        ((FAILED,), f"nothing put into Sequential (mlp); left: amp_dtype ({FAILED.why})"),
        ((put("A", INSTEAD),), f"put into Sequential (mlp): amp_dtype bfloat16 ({INSTEAD})"),
    ],
)
def test_the_line_says_what_was_put_in_and_what_was_left_and_why(rows: tuple[Applied, ...], said: str) -> None:
    assert told(*rows) == said


def test_models_are_named_once_with_their_kinds() -> None:
    assert told(models=[mlp(), convnet(), mlp()]).startswith("nothing put into Sequential (mlp), Sequential (convnet)")


@pytest.mark.parametrize(
    ("ranks", "shapes", "words"),
    [
        ("1", ((2, 4),), ""),
        ("", (), ""),
        ("8", ((2, 4),), "; tuned with 1 ranks, and these are 8"),
        ("1", ((3, 4), ()), "; tuned with inputs of 3x4, one number, and these are 2x4"),
    ],
)
def test_a_run_that_differs_from_the_one_that_was_tuned(
    monkeypatch: pytest.MonkeyPatch, ranks: str, shapes: tuple[tuple[int, ...], ...], words: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", ranks)
    tuned = TunedProgram(entry="train.py", models=(), settings={}, shapes=shapes)
    assert told(COMPILED, tuned=tuned) == f"put into Sequential (mlp): compile{words}"
