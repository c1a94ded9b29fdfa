"""The accuracy guard's trainings: which there are, when they are left out, and losses that break down."""

from typing import Any

import pytest
from loaded import on_cpu
from recorded import facts_of

from gputune import profile
from gputune.advice._training_rows import guard_words, refusals
from gputune.bench_process import Context
from gputune.benches import _training_groups
from gputune.benches._networks import Size
from gputune.benches._training_groups import final_losses
from gputune.facts.gap import Gap
from gputune.probing import recommending

SMALL = Size(batch=2, width=64, depth=1, length=16, classes=32)
FACTS = facts_of("cpu-only")
DTYPES = ("float32", "bfloat16")


@pytest.fixture
def context() -> Context:
    return on_cpu("thorough", 10)


def trained(losses: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_training_groups, "_train", lambda *given: (losses(*given[3:]), 0))


def test_fp32_from_five_seeds_and_each_other_precision_from_the_first(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(lambda precision, seed: [1.0] * 60, monkeypatch)
    rows = list(final_losses(context, "recurrent", SMALL, DTYPES, 600))
    runs = [(row.params["precision"], row.params["seed"]) for row in rows if not isinstance(row, Gap)]
    assert runs == [("float32", seed) for seed in range(5)] + [("bfloat16", 0)]


@pytest.mark.slow
def test_what_would_take_too_long_is_left_out_and_said(context: Context) -> None:
    row, gap = final_losses(context, "recurrent", SMALL, DTYPES, 0)
    assert gap == Gap(
        fact="bench.training_step.recurrent",
        reason="the accuracy guard of the recurrent needs more than 0 s here, and was left out",
    )
    assert guard_words([row], "recurrent") == "final losses not compared in this run's budget"


@pytest.mark.parametrize("first", [1.0, float("inf"), float("nan")])
def test_a_loss_that_is_no_number_is_refused_and_the_profile_written(
    context: Context, monkeypatch: pytest.MonkeyPatch, first: float
) -> None:
    broken = [first, *[float("nan")] * 59]
    trained(lambda precision, seed: broken if precision == "bfloat16" else [1.0, *[0.5 + seed / 100] * 59], monkeypatch)
    rows: Any = list(final_losses(context, "recurrent", SMALL, DTYPES, 600))
    assert refusals(rows, "recurrent") == {"bfloat16": "its loss became infinite or no number"}
    assert "diverged" in profile.dump(recommending.profile_of(FACTS, rows, "cpu", created="2026-01-01T00:00:00Z"))
