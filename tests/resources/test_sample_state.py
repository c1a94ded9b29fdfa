"""Which datasets may be loaded by workers, each of which has a copy: those in which nothing moves as samples load."""

import argparse
import array
import collections
import contextlib
import functools
import http.client
import io
import itertools
import logging
import mmap
import multiprocessing
import os
import queue
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from gputune.resources.sample_kind import NOT_PASSED, PRINTS, kind_of, why_not_in_workers
from gputune.resources.sample_sharing import ASKS, CONNECTION, WITH_OTHERS
from gputune.resources.sample_state import CHANGES, FILLS, ITERATOR, SHARED_FILE

pytestmark = pytest.mark.slow

UNLOADED = "a forked process could not load its first sample"


class Made(Dataset[Any]):
    """A dataset that holds something, and makes its samples with it."""

    def __init__(self, held: Any, make: Callable[[Any, int], Any]) -> None:
        self.held, self.make = held, make
        self.seen = 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return self.make(self.held, index)


class Counts(Made):
    def __getitem__(self, index: int) -> int:
        self.seen += 1
        return index


class CountsInItsClass(Made):
    all_seen = 0

    def __getitem__(self, index: int) -> int:
        type(self).all_seen += 1
        return index


class Slotted:
    __slots__ = ("last",)


class Opens(Made):
    """Opens its file when a first sample is asked for, as each worker does for itself."""

    file: Any = None

    def __getitem__(self, index: int) -> Any:
        self.file = self.file or Path(__file__).open("rb")  # noqa: SIM115
        self.file.seek(index)
        return self.file.read(1)


def refusal(dataset: Any, collate: Callable[[Any], Any] = list) -> str | None:
    return why_not_in_workers(dataset, lambda index: collate([dataset[index]]), collate)


def keeps(held: Any, index: int) -> int:
    held[index] = index
    return index


def adds(held: Any, index: int) -> int:
    held[index] += 1
    return index


def adds_by_name(_: Any, index: int, *, seen: list[int] = [0] * 8) -> int:
    return adds(seen, index)


def keeps_last(held: Any, index: int) -> int:
    held.last = index
    return index


def closed_over() -> Callable[[Any, int], int]:
    counts = torch.zeros(8)

    def make(_: Any, index: int) -> int:
        counts[index] += 1
        return index

    return make


def shared_lock() -> Any:
    held = multiprocessing.get_context("fork").Semaphore(1)
    return held, lambda: 1 - held.get_value(), lambda held: held.acquire(block=False)


def shared_count() -> Any:
    held = multiprocessing.get_context("fork").Value("i", 0)
    return held, lambda: held.value, lambda held: setattr(held, "value", 1)


def shared_bytes() -> Any:
    held = multiprocessing.get_context("fork").RawArray("b", 8)
    return held, lambda: sum(held), lambda held: adds(held, 0)


def shared_tensor() -> Any:
    held = torch.zeros(8).share_memory_()
    return held, lambda: held.sum().item(), lambda held: adds(held, 0)


def tensor_of_shared_memory() -> Any:
    memory = multiprocessing.get_context("fork").RawArray("b", 8)
    held = torch.from_numpy(np.frombuffer(memory, dtype=np.int8))
    return held, lambda: sum(memory), lambda held: adds(held, 0)


def array_of_shared_memory() -> Any:
    memory = mmap.mmap(-1, 8)
    held = np.frombuffer(memory, dtype=np.int8)
    return held, lambda: int(held.sum()), lambda held: adds(held, 0)


def queue_of_threads() -> Any:
    held = queue.Queue[int]()
    held.put(1)
    return held, lambda: 1 - held.qsize(), lambda held: held.get_nowait()


def shared_list() -> Any:
    manager = multiprocessing.get_context("fork").Manager()
    held = manager.list()
    return held, lambda: len(held), lambda held: held.append(1)


def of_a_pipe() -> Any:
    reader, writer = os.pipe()
    file = os.fdopen(reader)
    return file, lambda: (file.close(), os.close(writer))


def of_a_socket() -> Any:
    one, other = socket.socketpair()
    return {"one": one.makefile("rb")}, lambda: (one.close(), other.close())


def of_a_connection() -> Any:
    one, other = multiprocessing.Pipe()
    return [one], lambda: (one.close(), other.close())


def of_a_child() -> Any:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return child, child.communicate


def of_an_http_connection() -> Any:
    server = socket.create_server(("127.0.0.1", 0))
    held = http.client.HTTPConnection(*server.getsockname())
    held.connect()
    return held, lambda: (held.close(), server.close())


class TestRefused:
    @pytest.mark.parametrize(
        "dataset",
        [
            Counts(None, adds),
            Subset(Counts(None, adds), [5, 6, 7]),
            ConcatDataset([Subset(Counts(None, adds), [1, 2])]),
            CountsInItsClass(None, adds),
            Made(list(range(30)), lambda held, _: held.pop()),
            Made(collections.deque(range(30)), lambda held, _: held.popleft()),
            Made({1: [[0] * 8]}, lambda held, index: adds(held[1][0], index)),
            Made(torch.zeros(8), adds),
            Made(None, closed_over()),
            Made(None, adds_by_name),
            Made(Slotted(), keeps_last),
            Made(random.Random(1), lambda held, _: held.random()),
            Made(torch.Generator(), lambda held, _: torch.rand(1, generator=held)),
            Made(io.BytesIO(b"12345678"), lambda held, _: held.read(1)),
            Made(None, functools.partial(lambda seen, _, index: adds(seen, index), [0] * 8)),
        ],
    )
    def test_what_counts_or_consumes(self, dataset: Any) -> None:
        assert refusal(dataset) == CHANGES

    def test_what_is_counted_in_numpys_memory_or_drawn_of_its_generator(self) -> None:
        numpy = pytest.importorskip("numpy")
        assert refusal(Made(numpy.zeros(8), adds)) == CHANGES
        for one in (numpy.random.default_rng(0), numpy.random.RandomState(0)):
            assert refusal(Made(one, lambda held, _: held.normal())) == CHANGES

    def test_a_cache_that_fills(self) -> None:
        assert refusal(Made({}, keeps)) == FILLS
        assert refusal(Made(functools.lru_cache(abs), lambda held, index: held(index))) == FILLS

    @pytest.mark.parametrize("held", [iter(range(99)), itertools.count(), (one for one in range(99)), [map(abs, [1])]])
    def test_an_iterator(self, held: Any) -> None:
        assert refusal(Made(held, lambda *_: 0)) == ITERATOR

    def test_a_database_connection_of_which_nothing_is_asked_in_the_trial(self, tmp_path: Path) -> None:
        base = sqlite3.connect(tmp_path / "base")
        base.execute("create table seen (one)")

        def make(_: Any, index: int) -> int:
            base.execute("insert into seen values (?)", (index,))
            base.commit()
            return index

        assert refusal(Made(None, make)) == CONNECTION
        assert base.execute("select count(*) from seen").fetchone() == (0,)

    @pytest.mark.parametrize("mode", ["r", "rb", "r+"])
    def test_a_file_that_is_read_on_and_the_program_reads_on_where_it_was(self, tmp_path: Path, mode: str) -> None:
        path = tmp_path / "lines"
        path.write_text("".join(f"{number}\n" for number in range(20_000)))
        with path.open(mode) as file:
            made = Made(file, lambda held, _: int(held.readline()))
            assert refusal(made) == SHARED_FILE
            assert kind_of(made) is not None
            assert [made[0], made[1]] == [0, 1]
            assert refusal(made) == SHARED_FILE
            assert [made[0] for _ in range(5_000)] == list(range(2, 5_002))

    @pytest.mark.parametrize(
        "sample", [lambda *_: lambda: 1, lambda *_: threading.Lock(), lambda *_: torch.ones(3, requires_grad=True) * 2]
    )
    def test_batches_that_cannot_be_passed_on_as_they_are(self, sample: Any) -> None:
        assert refusal(Made(None, sample)) == NOT_PASSED
        assert refusal(Made(None, lambda _, index: sample() if index == 7 else 0)) == NOT_PASSED

    @pytest.mark.parametrize(
        "shared",
        [
            shared_lock,
            shared_count,
            shared_bytes,
            shared_tensor,
            tensor_of_shared_memory,
            array_of_shared_memory,
            queue_of_threads,
            shared_list,
        ],
    )
    def test_what_several_processes_share_and_the_trial_changes_none_of_it(self, shared: Callable[[], Any]) -> None:
        held, count, change = shared()
        made = Made({"held": [held]}, lambda held, index: change(held["held"][0]))
        assert refusal(made) == WITH_OTHERS
        assert kind_of(made) is None
        assert count() == 0

    @pytest.mark.parametrize("end", [of_a_pipe, of_a_socket, of_a_connection, of_a_child, of_an_http_connection])
    def test_what_leads_to_another_process(self, end: Callable[[], tuple[Any, Callable[[], object]]]) -> None:
        held, close = end()
        assert refusal(Made(held, lambda *_: 0)) == WITH_OTHERS
        close()

    def test_a_pipe_by_its_number_of_which_nothing_is_taken(self) -> None:
        reader, writer = os.pipe()
        os.write(writer, b"12345678")
        for make in (lambda *_: os.read(reader, 1), lambda *_: os.write(writer, b"9")):
            assert refusal(Made(None, make)) == UNLOADED
            assert kind_of(Made(None, make)) is None
        os.close(writer)
        assert os.read(reader, 20) == b"12345678"
        os.close(reader)

    def test_standard_input(self) -> None:
        for make in (lambda *_: sys.stdin.readline(), lambda *_: input(), lambda *_: os.read(0, 1)):
            assert refusal(Made(None, make)) == UNLOADED

    def test_a_dataset_that_asks_whether_it_is_in_a_worker(self) -> None:
        def make(_: Any, index: int) -> int:
            if torch.utils.data.get_worker_info() is not None:
                raise RuntimeError("not to be used with workers")
            return index

        assert refusal(Made(None, make)) == ASKS

    def test_samples_that_print(self, capfd: pytest.CaptureFixture[str]) -> None:
        for say in (lambda *_: subprocess.call(["echo", "said"]), lambda *_: os.write(1, b"said")):
            assert refusal(Made(None, say)) == PRINTS
        assert capfd.readouterr().out == ""

    @pytest.mark.parametrize(
        "held",
        [
            argparse.Namespace(step=0), types.SimpleNamespace(step=0), collections.UserDict(step=0), bytearray(4),
            array.array("i", [0]), np.zeros((4, 2))[:, 0],
        ],
        ids=lambda held: type(held).__name__,
    )  # fmt: skip
    def test_holders_of_the_standard_library_and_memory_in_pieces(self, held: Any) -> None:
        def make(held: Any, _: int) -> int:
            if hasattr(held, "step"):
                held.step += 1
            else:
                held["step" if isinstance(held, collections.UserDict) else 0] += 1
            return 0

        assert refusal(Made(held, make)) == CHANGES

    @pytest.mark.parametrize("decorator", [torch.no_grad(), contextlib.contextmanager])
    def test_a_function_in_a_librarys_decorator(self, decorator: Any) -> None:
        count = [0]

        @decorator
        def counted(*_: Any) -> Any:
            count[0] += 1
            return iter([0])

        def make(*_: Any) -> int:
            made = counted()
            if hasattr(made, "__enter__"):
                made.__enter__()
            return 0

        assert refusal(Made(counted, make)) == CHANGES

    def test_a_collate_function_that_counts(self) -> None:
        assert refusal(Made(None, lambda _, index: index), functools.partial(keeps_batch, [0] * 8)) == CHANGES

    def test_what_a_forked_process_cannot_load(self) -> None:
        for make in (lambda *_: 1 / 0, lambda *_: os._exit(1)):
            assert refusal(Made(None, make)) == UNLOADED

    def test_a_time_limit_of_the_programs_own_is_not_taken_for_the_answer(self) -> None:
        def too_slow(*_: Any) -> None:
            raise TimeoutError("too slow")

        before = signal.signal(signal.SIGALRM, too_slow)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(TimeoutError, match="too slow"):
                refusal(Made(None, lambda *_: time.sleep(2)))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def keeps_batch(held: Any, batch: Any) -> Any:
    held[batch[0]] += 1
    return batch


LOG = logging.getLogger(__name__)
QUEUE: queue.Queue[int] = queue.Queue()


class Named(Made):
    QUEUE = 1

    def __getitem__(self, index: int) -> int:
        return self.QUEUE + index


def logged(held: Any, index: int) -> Any:
    with held["lock"]:
        held["log"].debug("loads %s", index)
        LOG.info("loads %s", index)
        return random.random()


class TestGiven:
    @pytest.mark.parametrize(
        "dataset",
        [
            [1, 2, 3],
            range(1 << 40),
            TensorDataset(torch.arange(8.0)),
            torch.arange(8),
            Made(Path(__file__), lambda held, index: held.read_bytes()[index]),
            Made({"lock": threading.Lock(), "log": LOG}, logged),
            Made(threading.Event(), lambda held, index: torch.rand(3)),
            Opens(None, adds),
            ConcatDataset([Opens(None, adds), Opens(None, adds)]),
            Subset(TensorDataset(torch.arange(8.0)), [3, 4, 5]),
            Made([{"text": "a"}, {"text": "b"}] * 4, lambda held, index: dict(held[index])),
            Made(torch.nn.Linear(3, 3), lambda held, index: held(torch.ones(3)).detach()),
        ],
    )
    def test_ordinary_datasets(self, dataset: Any) -> None:
        assert refusal(dataset) is None

    def test_a_dataset_with_an_attribute_of_the_name_of_a_global_variable(self) -> None:
        assert refusal(Named(None, lambda held, _: held)) is None

    def test_a_dataset_that_opens_its_file_where_the_program_left_files_to_be_collected(self) -> None:
        for _ in range(40):
            left: Any = Slotted()
            left.last = [left, Path(__file__).open()]  # noqa: SIM115
            del left
            assert refusal(Opens(None, adds)) is None

    def test_images_with_transforms(self, tmp_path: Path) -> None:
        datasets = pytest.importorskip("torchvision").datasets
        from torchvision import transforms

        image = pytest.importorskip("PIL.Image")
        for name in "ab":
            (tmp_path / name).mkdir()
            image.new("RGB", (8, 8)).save(tmp_path / name / "0.png")
        steps = [transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        assert refusal(datasets.ImageFolder(str(tmp_path), transforms.Compose(steps))) is None

    @pytest.mark.timed
    def test_a_large_dataset_costs_little_more_than_its_samples(self) -> None:
        held = [(f"{number}.jpg", number) for number in range(500_000)], torch.zeros(1 << 24)
        made = Made(held, lambda held, index: held[0][index])
        begun = time.perf_counter()
        assert refusal(made) is None
        assert time.perf_counter() - begun < 1
