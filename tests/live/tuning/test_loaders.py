"""The waiting of a loop for its DataLoader, and other numbers of workers in its place."""

import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import torch
from torch.utils import data

from gputune.live.orders import LoaderDescribed
from gputune.live.tuning.loaders import Loaders


class Numbers(data.Dataset[Any]):
    def __init__(self, count: int = 8, seconds: float = 0.0) -> None:
        self.count, self.seconds = count, seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Any:
        if number >= self.count:
            raise IndexError
        time.sleep(self.seconds)
        return torch.full((4,), number)


@pytest.fixture
def loaders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaders]:
    kind: Any = data.dataloader._BaseDataLoaderIter
    for holder, name in ((data.DataLoader, "__init__"), (kind, "__init__"), (kind, "__next__")):
        monkeypatch.setattr(holder, name, getattr(holder, name))
    ends: list[None] = []
    made = Loaders(lambda: ends.append(None))
    made.ends = ends  # type: ignore[attr-defined]
    made.start()
    yield made
    for other in made._others.values():
        other.signal(signal.SIGCONT)
    made._others.clear()  # and with each its workers end


def first_of(batch: Any) -> int:
    return int(batch[0, 0])


def test_the_time_in_which_the_loop_waits(loaders: Loaders) -> None:
    list(data.DataLoader(Numbers(seconds=0.005), batch_size=2))
    assert 0.04 <= loaders.seconds < 1


def test_the_loader_that_was_asked_last(loaders: Loaders) -> None:
    assert loaders.described() == LoaderDescribed(obstacle="")
    loader = data.DataLoader(Numbers(), batch_size=2)
    next(iter(loader))
    assert loaders.described() == LoaderDescribed(batches=4, batch_bytes=2 * 4 * 8, dataset="Numbers")


def test_why_others_are_not_tried(loaders: Loaders) -> None:
    loader = data.DataLoader(Numbers(), num_workers=0)
    next(iter(loader))
    assert loaders.described().obstacle == "the program gave num_workers=0"


@pytest.mark.slow
def test_an_epoch_has_as_many_batches_as_ever_whoever_makes_them(loaders: Loaders) -> None:
    loader = data.DataLoader(Numbers(), batch_size=2)
    own = iter(loader)
    assert first_of(next(own)) == 0
    loaders.described()
    loaders.switch(2)
    assert [first_of(batch) for batch in own] == [0, 2, 4]
    assert [first_of(batch) for batch in loader] == [6, 0, 2, 4]
    again = iter(loader)
    assert first_of(next(again)) == 6
    loaders.switch(None)
    assert [first_of(batch) for batch in again] == [0, 2, 4]
    assert [first_of(batch) for batch in loader] == [0, 2, 4, 6]
    assert len(loaders.ends) == 4  # type: ignore[attr-defined]


def test_a_loader_whose_samples_count_in_the_dataset_is_left(loaders: Loaders) -> None:
    class Counts(Numbers):
        seen = 0

        def __getitem__(self, index: int) -> Any:
            self.seen += 1
            return super().__getitem__(index)

    loader = data.DataLoader(Counts())
    next(iter(loader))
    assert loaders.described().obstacle == "its dataset counts or consumes something as samples are loaded"


def test_a_loader_whose_epochs_have_no_length_is_left(loaders: Loaders) -> None:
    class Endless(data.DataLoader[Any]):
        def __len__(self) -> int:
            raise TypeError("no length")

    loader = Endless(Numbers())
    next(iter(loader))
    assert loaders.described().obstacle == "its epochs have no length"


def test_a_loader_that_shuffles_and_was_not_asked_is_for_a_training_to_come(loaders: Loaders) -> None:
    for _ in data.DataLoader(Numbers()):
        pass
    assert not loaders.may_train
    training = data.DataLoader(Numbers(), shuffle=True)
    assert loaders.may_train
    next(iter(training))
    assert not loaders.may_train


@pytest.mark.slow
def test_workers_that_are_not_asked_stand_still(loaders: Loaders) -> None:
    own = iter(data.DataLoader(Numbers(1000), batch_size=2))
    next(own)
    loaders.described()
    others = psutil.Process().children()
    loaders.switch(2)
    next(own)
    workers = [one for one in psutil.Process().children() if one not in others]
    assert len(workers) == 2
    loaders.switch(1)
    next(own)
    stopped = [one for one in workers if one.status() == psutil.STATUS_STOPPED]
    assert len(stopped) == 2
    loaders.switch(2)
    next(own)
    assert all(one.status() != psutil.STATUS_STOPPED for one in workers)


@pytest.mark.slow
def test_a_dataset_that_is_made_anew_is_the_same(loaders: Loaders) -> None:
    own = iter(data.DataLoader(Numbers(), batch_size=2))
    next(own)
    loaders.described()
    loaders.switch(2)
    first, second = (list(data.DataLoader(Numbers(), batch_size=2)) for _ in range(2))
    assert len(first) == len(second) == 4
    assert len(loaders._others) == 1


def test_other_datasets_are_left_alone(loaders: Loaders) -> None:
    own = iter(data.DataLoader(Numbers(), batch_size=2))
    next(own)
    loaders.described()
    loaders.switch(1)
    assert [first_of(batch) for batch in data.DataLoader(Numbers(2))] == [0, 1]
