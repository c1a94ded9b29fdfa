"""What is left out of the next start after something failed."""

from gputune.trials.combination import DEFAULT, Combination
from gputune.trials.failure import Attempts, RunFailed

FAILURE = RunFailed(how="raised", detail="RuntimeError: no")
TF32 = Combination.of({"matmul_precision": "tf32"})
BOTH = TF32.plus("fused_optimizer", True)


def test_a_setting_that_never_worked_is_left_out() -> None:
    attempts = Attempts(worked={DEFAULT, TF32})
    attempts.blame(BOTH, FAILURE)
    assert attempts.without == {"fused_optimizer"}
    assert attempts.failed == {"fused_optimizer + tf32": "it raised RuntimeError: no"}


def test_settings_that_worked_apart_are_left_out_together_only() -> None:
    attempts = Attempts(worked={TF32, Combination.of({"fused_optimizer": True})})
    attempts.blame(BOTH, FAILURE)
    assert (attempts.without, attempts.left_out) == (set(), {BOTH})


def test_fewer_workers_may_work_where_many_fail() -> None:
    attempts = Attempts(worked={DEFAULT, DEFAULT.plus("dataloader_workers", 4)})
    attempts.blame(DEFAULT.plus("dataloader_workers", 8), FAILURE)
    assert (attempts.without, attempts.left_out, attempts.most_workers) == (set(), set(), 7)


def test_workers_that_worked_are_not_to_blame() -> None:
    four = DEFAULT.plus("dataloader_workers", 4)
    attempts = Attempts(worked={DEFAULT, four})
    attempts.blame(four.plus("compile", True), FAILURE)
    assert (attempts.without, attempts.most_workers) == ({"compile"}, None)
