"""The one line about what was put into a program."""

from typing import Any

import pytest
from hands_on import convnet, mlp, rooted

from gputune.inject import decision
from gputune.inject.advice import Tuned
from gputune.inject.applied import Applied, Reason, Why
from gputune.inject.outcome import line


def put(name: str, value: Any = True, *more: str) -> Applied:
    return Applied(
        setting=name, after=value, status="applied", source="profile", reasons=(Reason.PUT_IN("Sequential"), *more)
    )


def left(name: str, why: Why | str) -> Applied:
    return Applied(setting=name, status="skipped", source="torch", reasons=(why,))


def told(*rows: Applied, models: Any = None, tuned: Tuned | None = None) -> str:
    found = [rooted(model) for model in (models or [mlp()])]
    for root in found:
        root.seen.shapes.append((2, 4))
    return line({row.setting: row for row in rows}, found, tuned)


HALF = left("amp_dtype", "its parameters are float16")
INSTEAD = "bfloat16 instead of float16, which needs a loss scaler"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "nothing put into Sequential (mlp): nothing measured better than torch's defaults"),
        ((put("amp_dtype", "bfloat16"), put("compile")), "put into Sequential (mlp): amp_dtype bfloat16, compile"),
        ((put("compile"), HALF), f"put into Sequential (mlp): compile; left: amp_dtype ({HALF.why})"),
        ((HALF,), f"nothing put into Sequential (mlp); left: amp_dtype ({HALF.why})"),
        ((put("compile"), left("channels_last", Reason.NO_IMAGES())), "put into Sequential (mlp): compile"),
        (
            (decision.failed("compile", "torch.compile failed: no C compiler"),),
            "nothing put into Sequential (mlp); left: compile (torch.compile failed: no C compiler)",
        ),
        (
            (put("amp_dtype", "bfloat16", INSTEAD),),
            f"put into Sequential (mlp): amp_dtype bfloat16 ({INSTEAD})",
        ),
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
    tuned = Tuned(entry="train.py", models=(), settings={}, shapes=shapes)
    assert told(put("compile"), tuned=tuned) == f"put into Sequential (mlp): compile{words}"
