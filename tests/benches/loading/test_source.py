"""A DataLoader under test: timed over whole rounds of its workers, which are stopped between the blocks."""

import time
from itertools import count
from types import SimpleNamespace

import psutil
import pytest
import torch
from broken_datasets import Hangs, Numbers, Round, Undivided
from torch.utils.data import BatchSampler, SequentialSampler

from gputune.benches._user_code import UserCodeError
from gputune.benches.loading.source import Options, Source, apart
from gputune.benches.loading.stream import Stream, failure


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


@pytest.mark.slow
def test_without_a_folder_for_temporary_files_workers_are_refused_rather_than_waited_for(monkeypatch):
    monkeypatch.setattr("gputune.benches.loading.source.temporary_folder", lambda: False)
    made = source(Numbers(8))
    made.loader(Options(workers=0))
    with pytest.raises(UserCodeError, match="workers need a folder for temporary files, and there is none: set TMPDIR"):
        made.loader(Options(workers=1))


class Clock:
    """Stands for the module `time`: seconds pass only where something sleeps, so that rates are exact."""

    now = 100.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("gputune.benches.loading.stream.time", made)
    return made


class Waking(Numbers):
    def __init__(self, clock, seconds):
        super().__init__()
        self.clock, self.seconds, self.latest, self.taken = clock, seconds, 0.0, []

    def __getitem__(self, index):
        self.clock.sleep(self.seconds + (0.06 if self.clock.now - self.latest > 0.15 else 0))
        self.latest = self.clock.now
        self.taken.append(index)
        return torch.tensor([index])


def working(clock, seconds, samples=1):
    def batches(options):
        done, taken, workers = {}, {}, options.workers
        for number in count():
            begun = max(done.get(number - workers, 100.0), taken.get(number - 2 * workers, 100.0))
            done[number] = begun + seconds
            clock.now = taken[number] = max(clock.now, done[number])
            yield number

    return SimpleNamespace(samples=samples, patience=3.0, stall=None, loader=batches)


@pytest.mark.timed
@pytest.mark.parametrize("workers", [1, 3])
def test_samples_per_second(opened, clock, workers):
    stream = opened(working(clock, 0.008, samples=4), workers=workers)
    assert stream.rate(0.1) == pytest.approx(4 * workers / 0.008)


@pytest.mark.timed
@pytest.mark.parametrize(("seconds", "step"), [(0.002, 0.0), (0.03, 0.0), (0.1, 0.0), (0.01, 0.1)])
def test_waking_up_is_not_counted_without_workers_either(opened, clock, seconds, step):
    stream = opened(source(Waking(clock, seconds), batch=1), workers=0)
    clock.sleep(0.2)
    assert stream.rate(0.08, step) == pytest.approx(1 / (seconds + step))


@pytest.mark.timed
def test_beside_a_long_batch_it_is_nothing(opened, clock):
    dataset = Waking(clock, 0.75)
    stream = opened(source(dataset, batch=1), workers=0)
    for step in (0.0, 0.5):
        before = len(dataset.taken)
        clock.sleep(0.2)
        assert stream.rate(0.08, step_seconds=step) == pytest.approx(1 / (0.81 + step))
        assert len(dataset.taken) == before + 1, "one of them is a sample"


@pytest.mark.timed
def test_a_worker_makes_up_for_the_batch_that_is_not_counted(opened, clock):
    stream = opened(working(clock, 0.1), workers=1)
    for _ in range(2):
        assert stream.rate(0.08, step_seconds=0.15, batch_seconds=0.11) == pytest.approx(1 / 0.15)


@pytest.mark.timed
def test_the_consumers_step_counts(opened, clock):
    stream = opened(working(clock, 0.004, samples=2), workers=1)
    assert stream.rate(0.2, step_seconds=0.02, batch_seconds=0.004) == pytest.approx(2 / 0.02)


@pytest.mark.slow
def test_workers_stand_still_between_blocks(opened):
    stream = opened(source(Numbers()), workers=2)
    workers = [psutil.Process(pid) for pid in stream.pids()]
    until(lambda: all(worker.status() == psutil.STATUS_STOPPED for worker in workers))
    stream.rate(0.02)
    until(lambda: all(worker.status() == psutil.STATUS_STOPPED for worker in workers))
    before = [worker.cpu_times()[:2] for worker in workers]
    time.sleep(0.1)
    assert [worker.cpu_times()[:2] for worker in workers] == before


@pytest.mark.slow
def test_closing_ends_workers_that_stand_still_and_keeps_nothing(opened):
    stream = opened(source(Numbers()), workers=2)
    processes = [psutil.Process(pid) for pid in stream.pids()]
    stream.close()
    assert not psutil.wait_procs(processes, timeout=5)[1]
    assert stream.pids() == []


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
    made = source(Numbers(8), batch=4, piece=3)
    assert made.samples == 3
    stream = Stream(made, Options(workers=0))
    assert [len(stream.take()) for _ in range(4)] == [3, 1, 3, 1]


@pytest.mark.parametrize(
    ("torchs", "reason", "cause"),
    [
        ("DataLoader worker (pid 7) is killed by signal: Killed. ", "a worker was killed by SIGKILL", "killed"),
        ("DataLoader worker (pid 7) is killed by signal: Aborted. ", "a worker was killed by signal: Aborted", None),
        ("DataLoader timed out after 3 seconds", "no batch came within 3 s", None),
        ("It is possible that dataloader's workers are out of shared memory.", "did not fit into /dev/shm", None),
        ("received 0 items of ancdata: Too many open files", "more open files than ulimit -n allows", None),
    ],
)
def test_what_torch_says_of_a_workers_end_becomes_a_reason_and_a_cause(torchs, reason, cause):
    found = failure(RuntimeError(torchs), 3.0)
    assert reason in str(found)
    assert found.cause == cause


@pytest.mark.slow
def test_a_dataset_that_hangs_in_this_process_is_interrupted():
    made = source(Hangs())
    made.patience = 0.2
    with pytest.raises(UserCodeError, match="no batch came within"):
        Stream(made, Options(workers=0)).open()


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
