"""What kind of samples a dataset has, told by real small datasets."""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gputune.resources import sample_kind
from gputune.resources.sample_kind import draws_random_numbers, kind, kind_of


class Made:
    def __init__(self, make: Callable[[int], Any], length: int = 1000) -> None:
        self.make, self.length = make, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def busy(seconds: float) -> int:
    end, turns = time.process_time() + seconds, 0
    while time.process_time() < end:
        turns += 1
    return turns


def test_samples_that_are_waited_for() -> None:
    assert kind_of(Made(lambda index: time.sleep(0.002))) == "waiting"


@pytest.mark.slow
def test_slices_of_memory() -> None:
    tokens = torch.arange(100_000)
    assert kind_of(Made(lambda index: tokens[index : index + 512])) == "memory"
    assert kind_of(tokens) == kind_of([1, 2, 3]) == kind_of(range(1 << 40)) == "memory"


@pytest.mark.timed
def test_samples_that_cost_cpu_time() -> None:
    assert kind_of(Made(lambda index: busy(0.001))) == "decoding"


@pytest.mark.parametrize(
    ("wall", "cpu", "expected"),
    [
        (5e-3, 5e-3, "decoding"),
        (5e-3, 2e-3, "decoding"),  # a busy machine
        (5e-3, 1e-3, "waiting"),
        (5e-3, 2e-5, "waiting"),
        (2e-5, 2e-5, "memory"),
        (9e-5, 1e-6, "memory"),  # not worth waiting for elsewhere
        (1.2e-4, 9e-5, "memory"),
    ],
)
def test_the_kind_follows_from_wall_and_cpu_time(wall: float, cpu: float, expected: str) -> None:
    assert kind(wall, cpu) == expected


def test_the_first_sample_may_open_what_the_others_use() -> None:
    opened: list[int] = []

    def make(index: int) -> None:
        if not opened:
            busy(0.02)
            opened.append(index)
        time.sleep(0.002)

    assert kind_of(Made(make)) == "waiting"


@pytest.mark.parametrize(
    ("seconds", "taken"), [(0.15, [0]), (0.0, list(range(0, 1600, 100)))], ids=["one that takes long", "a few"]
)
def test_a_few_samples_from_all_over_the_dataset_are_taken_in_a_short_time(
    tmp_path: Path, seconds: float, taken: list[int]
) -> None:
    log = tmp_path / "taken"

    def make(index: int) -> None:
        with log.open("a") as file:
            file.write(f"{index}\n")
        time.sleep(seconds)

    kind_of(Made(make, length=1600))
    assert [int(line) for line in log.read_text().split()] == taken


def test_taking_samples_leaves_no_trace_in_this_process() -> None:
    opened: list[int] = []

    def make(index: int) -> None:
        opened.append(index)
        random.random()
        torch.rand(1)

    before, threads = (random.getstate(), torch.get_rng_state().tolist()), torch.get_num_threads()
    assert kind_of(Made(make)) is not None
    assert opened == []
    assert (random.getstate(), torch.get_rng_state().tolist()) == before
    assert torch.get_num_threads() == threads


class Stream(torch.utils.data.IterableDataset[int]):
    def __len__(self) -> int:
        return 1000

    def __iter__(self) -> Iterator[int]:
        return iter(range(1000))


class Unsized:
    def __getitem__(self, index: int) -> int:
        return index


def broken(index: int) -> None:
    raise RuntimeError("no such file")


@pytest.mark.parametrize(
    "dataset",
    [Stream(), Unsized(), [], {1, 2, 3}, {"a": 1}, Made(broken), Made(lambda index: os._exit(3)), object(), None],
    ids=["iterable", "unsized", "empty", "no index", "by name", "raises", "dies", "nothing alike", "none"],
)
def test_where_no_sample_can_be_taken_the_kind_is_not_known(dataset: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert kind_of(dataset) is None
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_sample_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_kind, "DEADLINE_SECONDS", 0.2)
    started = time.monotonic()
    assert kind_of(Made(lambda index: time.sleep(60))) is None
    assert time.monotonic() - started < 10


class TestRandom:
    @pytest.mark.parametrize(
        "make",
        [
            lambda index: random.random(),
            lambda index: random.shuffle([1, 2, 3]),
            lambda index: torch.rand(1),
            lambda index: torch.randperm(4) if index else None,
        ],
    )
    def test_samples_that_do(self, make: Callable[[int], Any]) -> None:
        assert draws_random_numbers(Made(make)) is True

    def test_samples_that_draw_of_numpy(self) -> None:
        numpy = pytest.importorskip("numpy")
        assert draws_random_numbers(Made(lambda index: numpy.random.rand())) is True

    @pytest.mark.parametrize("make", [lambda index: index, torch.ones, lambda index: random.Random(index).random()])
    def test_samples_that_do_not(self, make: Callable[[int], Any]) -> None:
        assert draws_random_numbers(Made(make)) is False

    def test_it_is_unknown_where_none_can_be_loaded(self) -> None:
        assert draws_random_numbers(Made(lambda index: 1 / 0)) is None
        assert draws_random_numbers(Made(int, length=0)) is None
        assert draws_random_numbers(object()) is None
        assert draws_random_numbers(iter([1])) is None
