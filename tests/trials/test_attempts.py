"""What is left out of the next start after something failed."""

import pytest

from gputune.trials.combination import DEFAULT, Combination
from gputune.trials.failure import Attempts, RunFailed

FAILURE = RunFailed(how="raised", detail="RuntimeError: no")
TF32, FUSED = Combination.of({"matmul_precision": "tf32"}), Combination.of({"fused_optimizer": True})
BOTH = TF32.plus("fused_optimizer", True)
FOUR, EIGHT = DEFAULT.plus("dataloader_workers", 4), DEFAULT.plus("dataloader_workers", 8)


@pytest.mark.parametrize(
    ("worked", "failed", "without", "left_out", "most_workers"),
    [
        ({DEFAULT, TF32}, BOTH, {"fused_optimizer"}, set(), None),
        ({TF32, FUSED}, BOTH, set(), {BOTH}, None),
        ({DEFAULT, FOUR}, EIGHT, set(), set(), 7),
        ({DEFAULT, FOUR}, FOUR.plus("compile", True), {"compile"}, set(), None),
    ],
    ids=["never worked", "worked apart", "fewer workers may work", "workers that worked are not to blame"],
)
def test_what_is_to_blame(
    worked: set[Combination],
    failed: Combination,
    without: set[str],
    left_out: set[Combination],
    most_workers: int | None,
) -> None:
    attempts = Attempts(worked=worked)
    attempts.blame(failed, FAILURE)
    assert (attempts.without, attempts.left_out, attempts.most_workers) == (without, left_out, most_workers)
    assert attempts.failed == {str(failed): "it raised RuntimeError: no"}
