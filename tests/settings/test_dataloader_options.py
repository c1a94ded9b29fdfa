"""The DataLoader's options besides its workers: each is chosen where it gains over torch's default."""

from dataclasses import replace
from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune import settings
from gputune.settings import Choice

HOST = facts_of(affinity=range(16))
KINDS: dict[str, tuple[str, Any, Any]] = {
    "dataloader_persistent_workers": ("epochs", False, True),
    "dataloader_pin_memory": ("transfer", False, True),
    "dataloader_prefetch_factor": ("prefetch", 2, 4),
    "dataloader_threads": ("threads", 1, 4),
}
"""By setting the kind of its rows, torch's value and the other one."""
REASONS = {
    "dataloader_persistent_workers": "an epoch of 0.5 s with workers kept from the epoch before ran 1.3 times",
    "dataloader_pin_memory": "loading {} through pinned memory and copying them to the GPU ran 1.3 times",
    "dataloader_prefetch_factor": "loading with 4 batches ahead per worker ran 1.3 times",
    "dataloader_threads": "loading with 4 threads in each worker ran 1.3 times",
}
BATCHES = {"dataloader": "large batches", "dataset": "the dataset's batches"}
every_option = pytest.mark.parametrize("option", KINDS)


def recommend(option: str, rows: list[Any]) -> Choice:
    choice: Choice = settings.load(option).recommend(HOST, rows)
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
    return [
        row(bench, "throughput", each, **params, **{option.removeprefix("dataloader_"): at})
        for at, each in ((other, rate), (torchs, 100.0))
    ]


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


@pytest.mark.parametrize("option", [option for option in KINDS if option != "dataloader_pin_memory"])
def test_without_workers_there_is_nothing_to_choose(option: str) -> None:
    choice = recommend(option, measured(option, 130.0))
    assert choice.value is default(option)
    assert choice.reason.startswith("no workers")


def test_without_a_gpu_there_is_nothing_to_copy_to() -> None:
    rows = [replace(one, device="cpu") for one in measured("dataloader_pin_memory", 900.0)]
    choice = recommend("dataloader_pin_memory", rows)
    assert choice.value is False
    assert "no GPU" in choice.reason


def test_a_batch_ahead_where_shared_memory_holds_no_more_of_the_dataset() -> None:
    """Even where more of them gain."""
    own = [
        row("dataset", "throughput", rate, kind="dataset", workers=workers, batch=8, **ahead)
        for workers, rate, ahead in (
            (0, 100.0, {}),
            (4, 380.0, {"prefetch_factor": 1}),
            (1, 100.0, {"prefetch_factor": 2}),
        )
    ]
    choice = recommend("dataloader_prefetch_factor", measured("dataloader_prefetch_factor", 130.0, "dataset") + own)
    assert (choice.value, choice.gain, choice.evidence) == (1, None, ("dataset",))
    assert choice.reason == "/dev/shm holds no more of the dataset's batches"


def few_epochs(kept: float, samples: int, epoch_seconds: float) -> list[Any]:
    """A few epochs with kept workers at this rate, and with new ones at 100."""
    rows = measured("dataloader_persistent_workers", kept)
    short = [replace(one, samples=one.samples[:samples]) for one in rows]
    return [replace(one, params=one.params | {"epoch_seconds": epoch_seconds}) for one in short]


def test_beside_a_long_epoch_a_few_starts_are_enough_to_say_that_nothing_is_gained() -> None:
    choice = recommend("dataloader_persistent_workers", loaded("dataloader") + few_epochs(100.5, 3, 600.0))
    assert (choice.value, choice.gain, choice.evidence) == (False, None, ("dataloader",))
    assert choice.reason == "no gain: to start 4 workers is next to nothing beside an epoch of 600 s"


@pytest.mark.parametrize(("kept", "samples"), [(100.5, 2), (130.0, 3)])
def test_a_few_starts_say_nothing_else(kept: float, samples: int) -> None:
    choice = recommend("dataloader_persistent_workers", loaded("dataloader") + few_epochs(kept, samples, 0.5))
    assert (choice.value, choice.reason) == (False, "too few samples in this run to tell")
