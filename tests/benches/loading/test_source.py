"""A DataLoader under test: timed over whole rounds of its workers, which are stopped between the blocks."""

import os
import time
from pathlib import Path

import psutil
import pytest
import torch
from broken_datasets import Ends, Hangs, Killed, Numbers, Raises, Round, Undivided
from making import environ, python
from torch.utils.data import BatchSampler, SequentialSampler

from gputune.benches._user_code import UserCodeError
from gputune.benches.loading.source import Options, Source, apart, own_threads
from gputune.benches.loading.stream import Stream


class Slow(Numbers):
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.tensor([index])


def source(dataset, batch=4, **more):
    indices = BatchSampler(SequentialSampler(dataset), batch, False)
    return Source(dataset=dataset, batch_size=batch, indices=indices, patience=3.0, **more)


def until(true, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def opened():
    streams = []

    def open_stream(made, **options):
        stream = Stream(made, Options(**options))
        streams.append(stream)
        stream.open()
        return stream

    yield open_stream
    for stream in streams:
        stream.close()


@pytest.mark.timed
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_samples_per_second(opened, workers):
    stream = opened(source(Slow()), workers=workers)
    rate = max(stream.rate(0.1) for _ in range(7))  # whatever else runs here only makes it slower
    assert rate == pytest.approx(500 * max(1, workers), rel=0.35)


WITHOUT_A_FOLDER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # nothing can be written, in whatever folder
from broken_datasets import Numbers
from gputune.benches.loading.source import Options, Source
from gputune.benches._user_code import UserCodeError
source = Source(dataset=Numbers(), batch_size=4, indices=[[0, 1], [2, 3]])
print(len(list(source.loader(Options(workers=0), epochs=True))))
try:
    source.loader(Options(workers=1))
except UserCodeError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_a_folder_for_temporary_files_workers_are_refused_rather_than_waited_for():
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    result = python("-c", WITHOUT_A_FOLDER, env=environ(PYTHONPATH=path))
    assert result.stdout.splitlines() == [
        "2",
        "workers need a folder for temporary files, and there is none: set TMPDIR, or docker run --tmpfs /tmp",
    ], result.stderr


class Sleepy(Numbers):
    """The first item after a pause takes long."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.latest, self.taken = seconds, 0.0, []

    def __getitem__(self, index):
        if time.monotonic() - self.latest > 0.15:
            time.sleep(0.06)
        time.sleep(self.seconds)
        self.latest = time.monotonic()
        self.taken.append(index)
        return torch.tensor([index])


@pytest.mark.timed
@pytest.mark.parametrize(("seconds", "step"), [(0.002, 0.0), (0.03, 0.0), (0.1, 0.0), (0.01, 0.1)])
def test_waking_up_is_not_counted_without_workers_either(opened, seconds, step):
    stream = opened(source(Sleepy(seconds), batch=1), workers=0)
    time.sleep(0.2)
    assert stream.rate(0.08, step) == pytest.approx(1 / (seconds + step), rel=0.35)


@pytest.mark.timed
def test_beside_a_long_batch_it_is_nothing(opened, monkeypatch):
    monkeypatch.setattr("gputune.benches.loading.stream.LONG_SECONDS", 0.2)
    dataset = Sleepy(0.25)
    stream = opened(source(dataset, batch=1), workers=0)
    before = len(dataset.taken)
    assert stream.rate(0.08) == pytest.approx(1 / 0.31, rel=0.3)
    assert len(dataset.taken) == before + 1, "one of them is a sample"
    assert stream.rate(0.08, step_seconds=0.5) == pytest.approx(1 / 0.81, rel=0.3)
    assert len(dataset.taken) == before + 2


@pytest.mark.timed
def test_a_worker_makes_up_for_the_batch_that_is_not_counted(opened):
    """It takes 0.1 s for a batch, a step 0.15: the consumer never waits, from the first block on."""
    stream = opened(source(Sleepy(0.1), batch=1), workers=1)
    for _ in range(2):
        assert stream.rate(0.08, step_seconds=0.15, batch_seconds=0.11) == pytest.approx(1 / 0.15, rel=0.25)


@pytest.mark.timed
def test_the_consumers_step_counts(opened):
    stream = opened(source(Slow(), batch=2), workers=1)
    rate = max(stream.rate(0.2, step_seconds=0.02) for _ in range(4))  # whatever else runs here only makes it slower
    assert rate == pytest.approx(2 / 0.02, rel=0.2)


def test_workers_stand_still_between_blocks(opened):
    stream = opened(source(Numbers()), workers=2)
    for pid in stream.pids():
        until(lambda pid=pid: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    stream.rate(0.02)
    time.sleep(0.05)
    before = [sum(psutil.Process(pid).cpu_times()[:2]) for pid in stream.pids()]
    time.sleep(0.1)
    assert [sum(psutil.Process(pid).cpu_times()[:2]) for pid in stream.pids()] == before


def test_closing_ends_workers_that_stand_still(opened):
    stream = opened(source(Numbers()), workers=2)
    processes = [psutil.Process(pid) for pid in stream.pids()]
    stream.close()
    assert not psutil.wait_procs(processes, timeout=5)[1]


def test_no_two_loaders_read_the_same_samples_one_after_the_other():
    made = source(Numbers(64))
    first, second = (Stream(made, Options(workers=0)) for _ in range(2))
    taken = [int(stream.take()[0, 0]) for stream in (first, second, first, second)]
    assert taken == [0, 4, 8, 12]


def test_an_epoch_follows_the_other():
    stream = Stream(source(Numbers(8)), Options(workers=0))
    assert [int(stream.take()[0, 0]) for _ in range(5)] == [0, 4, 0, 4, 0]
    stream = Stream(Source(dataset=Undivided(), batch_size=500), Options(workers=0))
    assert [int(stream.take()[0, 0]) for _ in range(3)] == [0, 500, 0]


def test_batches_are_cut_to_pieces():
    made = source(Numbers(8), batch=4)
    made.piece = 3
    assert made.samples == 3
    stream = Stream(made, Options(workers=0))
    assert [len(stream.take()) for _ in range(4)] == [3, 1, 3, 1]


def test_more_threads_in_each_worker_and_what_the_user_does_there():
    class Told(Numbers):
        def __getitem__(self, index):
            return torch.tensor([torch.get_num_threads(), getattr(torch, "_told", 0)])

    def tell(worker):
        torch._told = 5

    stream = Stream(source(Told(), more={"worker_init_fn": tell}), Options(workers=1, threads=2))
    assert stream.take()[0].tolist() == [2, 5]
    stream.close()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("dataset", "says"),
    [(Raises, "ValueError: cannot read sample of two lines (broken_datasets.py:25, in __getitem__)")],
)
def test_what_a_dataset_raises_is_one_line(dataset, says, workers):
    stream = Stream(source(dataset()), Options(workers=workers))
    with pytest.raises(UserCodeError) as caught:
        stream.open()
    stream.close(failed=True)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        (Hangs, "no batch came within 1 s"),
        (Killed, "a worker was killed by SIGKILL"),
    ],
)
def test_a_worker_that_hangs_or_dies_is_one_line_and_gone(dataset, says):
    made = source(dataset())
    made.patience = 1.0 if dataset is Hangs else made.patience
    stream = Stream(made, Options(workers=2))
    with pytest.raises(UserCodeError) as caught:
        stream.open()
    processes = [psutil.Process(pid) for pid in stream.pids() if psutil.pid_exists(pid)]
    started = time.monotonic()
    stream.close(failed=True)
    assert not psutil.wait_procs(processes, timeout=5)[1]
    assert time.monotonic() - started < 3
    assert str(caught.value) == says


def test_a_dataset_that_hangs_in_this_process_is_interrupted():
    made = source(Hangs())
    made.patience = 0.2
    with pytest.raises(UserCodeError, match="no batch came within"):
        Stream(made, Options(workers=0)).open()


def test_an_empty_stream_does_not_go_round_for_ever():
    with pytest.raises(UserCodeError, match="the dataset is empty"):
        Stream(Source(dataset=Ends(), batch_size=4), Options(workers=0)).open()


def test_torch_computes_with_no_more_threads_than_there_are_cpus():
    before = torch.get_num_threads()
    with own_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with own_threads(1000):
        assert torch.get_num_threads() == before


def test_what_a_dataset_opens_here_is_not_open_in_workers_that_are_forked_later():
    class Opens(Numbers):
        opened = False

        def __getitem__(self, index):
            before, self.opened = self.opened, True
            return torch.tensor([int(before)])

    inner = Opens(8)
    made = source(torch.utils.data.ConcatDataset([torch.utils.data.Subset(inner, range(8))]))
    here = Stream(made, Options(workers=0))
    assert [here.take().sum() for _ in range(2)] == [3, 4], "the first of all samples opens"
    later = Stream(made, Options(workers=1))
    assert later.take().sum() == 3
    later.close()


def test_datasets_that_refer_to_each_other_are_copied_once():
    whole = Round()
    copied = apart(whole)
    assert copied is not whole
    assert copied.train.whole is copied.test.whole is copied
    assert copied.train is not whole.train


def test_a_loader_that_is_closed_keeps_nothing():
    stream = Stream(source(Numbers()), Options(workers=1))
    stream.open()
    stream.close()
    assert stream._iterator is None
