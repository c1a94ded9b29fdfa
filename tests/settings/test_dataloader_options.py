"""The DataLoader's options besides its workers: each is chosen where it gains over torch's default."""

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune import settings
from gputune.settings import Choice

HOST = facts_of(affinity=range(16))
KINDS: dict[str, tuple[str, Any, Any]] = {
    "persistent_workers": ("epochs", False, True),
    "pin_memory": ("transfer", False, True),
    "prefetch_factor": ("prefetch", 2, 4),
    "threads": ("threads", 1, 4),
}
"""By option the kind of its rows, torch's value and the other one."""
REASONS = {
    "persistent_workers": "an epoch of 0.5 s with workers kept from the one before ran 1.3 times",
    "pin_memory": "loading {} through pinned memory and copying them to the GPU ran 1.3 times",
    "prefetch_factor": "loading with 4 batches ahead a worker instead of 2 ran 1.3 times",
    "threads": "loading with 4 threads in each worker ran 1.3 times",
}
BATCHES = {"dataloader": "large batches", "dataset": "the dataset's batches"}
every_option = pytest.mark.parametrize("option", KINDS)


def recommend(option: str, rows: list[Any]) -> Choice:
    choice: Choice = settings.load(f"dataloader_{option}").recommend(HOST, rows)
    return choice


def default(option: str) -> bool | None:
    return None if KINDS[option][1] else False


def loaded(bench: str) -> list[Any]:
    """Rows for which 4 workers are the best."""
    kind = "dataset" if bench == "dataset" else "decoding"
    return [row(bench, "throughput", rate, kind=kind, workers=n, batch=8) for n, rate in ((0, 100.0), (4, 380.0))]


def measured(option: str, rate: float, bench: str = "dataloader") -> list[Any]:
    """Rows of the option at `rate`, and of torch's default at 100."""
    kind, torchs, other = KINDS[option]
    params = {"kind": kind, "workers": 4, "epoch_seconds": 0.5}
    return [row(bench, "throughput", each, **params, **{option: at}) for at, each in ((other, rate), (torchs, 100.0))]


@every_option
@pytest.mark.parametrize("bench", BATCHES)
def test_a_gain(option: str, bench: str) -> None:
    choice = recommend(option, loaded(bench) + measured(option, 130.0, bench))
    assert choice.value == KINDS[option][2]
    assert choice.gain == pytest.approx(1.3, rel=0.01)
    assert choice.reason.startswith(REASONS[option].format(BATCHES[bench]))
    assert choice.evidence == (bench,)


@every_option
@pytest.mark.parametrize("rate", [100.0, 102.0, 80.0])
def test_no_gain(option: str, rate: float) -> None:
    choice = recommend(option, loaded("dataloader") + measured(option, rate))
    assert choice.value is default(option)
    assert choice.reason.startswith("no gain: ")


@every_option
@pytest.mark.parametrize("missing", range(2))
def test_not_measured(option: str, missing: int) -> None:
    rows = measured(option, 130.0)
    del rows[missing]
    choice = recommend(option, loaded("dataloader") + rows)
    assert (choice.value, choice.gain) == (default(option), None)
    assert choice.reason == "not measured in this run's budget"


@every_option
def test_the_users_own_dataset_decides_where_it_was_measured(option: str) -> None:
    both = loaded("dataloader") + loaded("dataset")
    assert recommend(option, both + measured(option, 130.0)).value is default(option)
    choice = recommend(option, both + measured(option, 100.0) + measured(option, 130.0, "dataset"))
    assert (choice.value, choice.evidence) == (KINDS[option][2], ("dataset",))


@pytest.mark.parametrize("option", ["persistent_workers", "prefetch_factor", "threads"])
def test_without_workers_there_is_nothing_to_choose(option: str) -> None:
    choice = recommend(option, measured(option, 130.0))
    assert choice.value is default(option)
    assert choice.reason.startswith("no workers")
