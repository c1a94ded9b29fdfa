"""Arguments of a DataLoader for this dataset, and for the CPUs and the shared memory here."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from making import profile, python, row
from recorded import RecordedHost
from trees import CGROUP

from gputune.knobs.dataloader_prefetch_factor import HELD, PREFETCH
from gputune.knobs.dataloader_workers import LIMITS
from gputune.live import loading
from gputune.live.loading import Load, MeasuredLoading, arguments, fitted, fitting, for_dataset, scaled
from gputune.measurement import Measurement
from gputune.resources.room import Room, room
from gputune.runtime.advising import measured_loading

MIB = 1 << 20


def batch_bytes(*sizes: float) -> Measurement:
    return Measurement(bench="dataset", metric="batch_bytes", unit="B", samples=sizes, device="cpu")


WORKERS_NAME = "dataloader_workers"
LOADED = row("dataset", "throughput", 1.0, kind="dataset", workers=4, batch=8)
BY_KIND = MeasuredLoading(workers_by_kind={"memory": 0, "waiting": 32})


def notes(load: Load) -> dict[str, str]:
    return {name: "; ".join(map(str, reasons)) for name, reasons in load.notes.items()}


class TestMeasured:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, MeasuredLoading(cpu_budget=16)),
            (
                {"measurements": (batch_bytes(1e6, 3e6), batch_bytes(2e6), row("matmul_peak", "burst", 1.0))},
                MeasuredLoading(cpu_budget=16, batch_bytes=3_000_000),
            ),
            ({"measurements": (LOADED,)}, MeasuredLoading(cpu_budget=16, own_dataset=True)),
            ({"measurements": (row("dataloader", "throughput", 1.0),)}, MeasuredLoading(cpu_budget=16)),
            (
                {"families": {"memory": {WORKERS_NAME: 0}, "waiting": {WORKERS_NAME: 32}, "convnet": {}}},
                replace(BY_KIND, cpu_budget=16),
            ),
        ],
    )
    def test_what_a_profile_says_of_loading(self, given: dict[str, Any], expected: MeasuredLoading) -> None:
        assert measured_loading(profile({}, **given)) == expected

    @pytest.mark.parametrize(
        ("workers", "more", "bound"), [(8, {}, True), (33, {}, False), (8, {"step_ms": 5.0}, False)]
    )
    def test_a_number_that_the_user_wrote_into_the_file_counts(
        self, workers: int, more: dict[str, float], bound: bool
    ) -> None:
        loaded = row("dataset", "throughput", 1.0, kind="dataset", workers=4, batch=8, **more)
        assert measured_loading(profile({"dataloader_workers": workers}, measurements=(loaded,))).cpus_bound == bound


class TestRoom:
    @pytest.mark.parametrize(
        ("overrides", "cpus"),
        [
            ({}, 16),
            ({"affinity": [0, 1, 2]}, 3),
            ({"files": {f"{CGROUP}/cpu.max": "150000 100000"}}, 1),
            ({"environ": {"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "8"}}, 8),
            ({"environ": {"LOCAL_WORLD_SIZE": "4"}}, 4),
        ],
        ids=["all", "affinity", "quota", "grant", "ranks"],
    )
    def test_the_cpus_that_this_rank_may_use(self, overrides: dict[str, Any], cpus: int) -> None:
        assert room(RecordedHost(**overrides)).cpus == cpus

    def test_ranks_share_what_is_free_in_shared_memory(self) -> None:
        alone = room(RecordedHost()).shm_bytes
        assert alone == RecordedHost().space_bytes("/dev/shm")[1]
        assert room(RecordedHost(environ={"LOCAL_WORLD_SIZE": "4"})).shm_bytes == alone // 4


class TestForDataset:
    chosen = Load(workers=8, prefetch=4)

    @pytest.fixture
    def told_kind(self, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
        monkeypatch.setattr(loading, "kind_of", lambda dataset: request.param)
        return request.param

    @pytest.mark.parametrize("dataset", [[], [1], range(1), torch.zeros(1, 8)])
    def test_a_single_sample_gets_no_workers(self, dataset: Any) -> None:
        load = for_dataset(self.chosen, MeasuredLoading(), dataset)
        assert load.workers == 0
        assert notes(load) == {"dataloader_workers": f"nothing to load ahead in a dataset of length {len(dataset)}"}
        assert for_dataset(Load(), MeasuredLoading(), dataset) == Load()

    @pytest.mark.parametrize(
        ("told_kind", "workers"), [("decoding", 8), ("memory", 0), ("waiting", 32), (None, 8)], indirect=["told_kind"]
    )
    def test_another_gets_those_that_were_best_for_its_kind(self, told_kind: str | None, workers: int) -> None:
        load = for_dataset(self.chosen, BY_KIND, range(100))
        assert (load.workers, load.prefetch) == (workers, 4)
        assert bool(load.notes) == (workers != 8)

    @pytest.mark.parametrize("told_kind", ["waiting"], indirect=True)
    def test_a_kind_that_was_not_measured_keeps_the_general_choice(self, told_kind: str) -> None:
        load = for_dataset(self.chosen, MeasuredLoading(workers_by_kind={"memory": 0}), range(100))
        assert load == self.chosen

    def test_where_the_users_own_dataset_was_measured_none_of_this_is_looked_at(self) -> None:
        own = MeasuredLoading(own_dataset=True, workers_by_kind={"memory": 0})
        assert for_dataset(self.chosen, own, Untouchable()) == self.chosen

    def test_nor_where_no_kind_was_measured(self) -> None:
        assert for_dataset(self.chosen, MeasuredLoading(), Untouchable()) == self.chosen


class Untouchable:
    """None of its samples may be taken, not even in a child: it could not be copied there."""

    def __len__(self) -> int:
        return 100

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


class TestFitted:
    def test_workers_in_proportion_to_the_cpus(self) -> None:
        load = fitted(Load(workers=16, prefetch=4), MeasuredLoading(cpu_budget=16), Room(cpus=2))
        assert (load.workers, load.prefetch) == (2, 4)
        assert notes(load) == {"dataloader_workers": "16 workers were measured with 16 CPUs, and this process has 2"}

    @pytest.mark.parametrize(("there", "here"), [(16, 16), (None, 2), (16, None)])
    def test_the_same_or_unknown_cpus_change_nothing(self, there: int | None, here: int | None) -> None:
        load = Load(workers=16, prefetch=4)
        assert fitted(load, MeasuredLoading(cpu_budget=there), Room(cpus=here)) == load

    @pytest.mark.parametrize(
        ("free", "workers", "prefetch"), [(340, 8, 4), (100, 8, 1), (50, 3, 1), (20, 0, None), (None, 8, 4)]
    )
    def test_batches_in_flight_within_shared_memory(self, free: int | None, workers: int, prefetch: int | None) -> None:
        there = Room(cpus=16, shm_bytes=free and free * MIB)
        load = fitted(Load(workers=8, prefetch=4), MeasuredLoading(cpu_budget=16, batch_bytes=10 * MIB), there)
        assert (load.workers, load.prefetch) == (workers, prefetch)
        why = f"a batch takes 10 MiB, and this process's share of /dev/shm is {free} MiB"
        assert set(notes(load).values()) <= {why}
        assert ("dataloader_workers" in load.notes) == (workers != 8)
        assert ("dataloader_prefetch_factor" in load.notes) == (prefetch != 4)

    def test_both_are_said(self) -> None:
        measured = MeasuredLoading(cpu_budget=16, batch_bytes=10 * MIB)
        load = fitted(Load(workers=16, prefetch=1), measured, Room(cpus=8, shm_bytes=50 * MIB))
        assert load.workers == 3
        assert notes(load)["dataloader_workers"] == (
            "16 workers were measured with 16 CPUs, and this process has 8; "
            "a batch takes 10 MiB, and this process's share of /dev/shm is 50 MiB"
        )

    def test_no_workers_where_they_would_hang(self) -> None:
        load = fitted(Load(workers=4, prefetch=4), MeasuredLoading(cpu_budget=2), Room(cpus=2, temporary=False))
        assert load.workers == 0
        assert notes(load) == {
            "dataloader_workers": "workers need a folder for temporary files (TMPDIR), and none is available"
        }
        assert fitted(Load(workers=0), MeasuredLoading(cpu_budget=2), Room(cpus=2, temporary=False)) == Load(workers=0)

    @pytest.mark.parametrize("here", [2, 64])
    def test_workers_that_wait_do_not_follow_the_cpus(self, here: int) -> None:
        load = fitted(Load(workers=48, scales=False), MeasuredLoading(cpu_budget=16), Room(cpus=here))
        assert load.workers == 48


def test_prefetch_factor_is_an_argument_with_workers_only() -> None:
    some = arguments(Load(workers=2, prefetch=4), pin_memory=True)
    assert some == {"num_workers": 2, "pin_memory": True, "prefetch_factor": 4}
    assert arguments(Load(workers=0, prefetch=4), pin_memory=True) == {"num_workers": 0, "pin_memory": True}


def test_asking_how_children_start_leaves_that_to_the_program() -> None:
    code = """
from gputune.live.loading import start_method
import multiprocessing
print(start_method() == multiprocessing.get_all_start_methods()[0])
multiprocessing.set_start_method("spawn")
print(start_method())
"""
    done = python("-c", code)
    assert (done.stdout.split(), done.stderr) == (["True", "spawn"], "")


WORKERS = st.integers(0, LIMITS[1])
CPUS = st.integers(1, 4096)
AHEAD = st.none() | st.integers(1, 64)
BYTES = st.integers(0, 1 << 40)


@pytest.mark.parametrize(
    ("workers", "profiled", "here", "expected"),
    [
        (16, 16, 16, 16),
        (16, 16, 2, 2),
        (8, 16, 4, 2),
        (3, 16, 8, 1),  # 1.5, rounded down
        (2, 16, 1, 1),  # 0.125, but one at least
        (0, 16, 2, 0),
        (0, 2, 16, 0),
        (16, 16, 64, 64),  # the CPUs were the limit
        (4, 16, 64, 4),  # they were not
        (32, 16, 64, 128),  # more than CPUs, for samples that wait
        (32, 16, 2, 4),
        (600, 600, 4096, LIMITS[1]),
        (16, None, 2, 16),
        (16, 16, None, 16),
        (16, 0, 2, 16),
    ],
)
def test_in_proportion_to_the_cpus_where_those_are_the_limit(
    workers: int, profiled: int | None, here: int | None, expected: int
) -> None:
    assert scaled(workers, profiled, here) == expected


@given(WORKERS, CPUS, CPUS)
def test_workers_stay_within_the_limits_and_where_there_were_some_there_are_some(
    workers: int, profiled: int, here: int
) -> None:
    found = scaled(workers, profiled, here)
    assert LIMITS[0] <= found <= LIMITS[1]
    assert bool(found) == bool(workers)


@given(WORKERS, CPUS, CPUS, CPUS)
def test_more_cpus_never_mean_fewer_workers(workers: int, profiled: int, one: int, other: int) -> None:
    assert scaled(workers, profiled, min(one, other)) <= scaled(workers, profiled, max(one, other))


@given(WORKERS, WORKERS, CPUS, CPUS)
def test_more_measured_workers_never_mean_fewer(one: int, other: int, profiled: int, here: int) -> None:
    assert scaled(min(one, other), profiled, here) <= scaled(max(one, other), profiled, here)


@pytest.mark.parametrize(
    ("workers", "prefetch", "batches", "expected"),
    [
        (8, 4, 34, (8, 4)),
        (8, 4, 33, (8, 3)),
        (8, 4, 10, (8, 1)),
        (8, 4, 9, (7, 1)),
        (8, 4, 3, (1, 1)),
        (8, 4, 2, (0, None)),
        (8, 4, 0, (0, None)),
        (8, None, 18, (8, None)),  # torch's own prefetch, 2
        (8, None, 17, (8, 1)),
        (0, 4, 100, (0, None)),
    ],
)
def test_first_less_is_prefetched_and_then_there_are_fewer_workers(
    workers: int, prefetch: int | None, batches: int, expected: tuple[int, int | None]
) -> None:
    assert fitting(workers, prefetch, 1000, batches * 1000) == expected
    assert fitting(workers, prefetch, 1000, batches * 1000 + 999) == expected


@given(WORKERS, AHEAD, st.integers(1, 1 << 32), BYTES)
def test_never_more_than_fits_nor_than_was_asked_for(
    workers: int, prefetch: int | None, batch_bytes: int, shm_bytes: int
) -> None:
    some, ahead = fitting(workers, prefetch, batch_bytes, shm_bytes)
    assert some <= workers
    assert _ahead(ahead) <= _ahead(prefetch) or not some
    assert not some or (some * _ahead(ahead) + HELD) * batch_bytes <= shm_bytes


@given(WORKERS, AHEAD, st.integers(1, 1 << 32), BYTES)
def test_the_next_larger_would_not_fit(workers: int, prefetch: int | None, batch_bytes: int, shm_bytes: int) -> None:
    some, ahead = fitting(workers, prefetch, batch_bytes, shm_bytes)
    if some < workers:
        assert (some + 1 + HELD) * batch_bytes > shm_bytes
    elif _ahead(ahead) < _ahead(prefetch) and some:
        assert (some * (_ahead(ahead) + 1) + HELD) * batch_bytes > shm_bytes


@given(WORKERS, AHEAD, st.integers(1, 1 << 32), BYTES, BYTES)
def test_more_memory_never_means_fewer_batches_ahead(
    workers: int, prefetch: int | None, batch_bytes: int, one: int, other: int
) -> None:
    less, more = (fitting(workers, prefetch, batch_bytes, size) for size in sorted((one, other)))
    assert less[0] <= more[0]
    assert less[0] * _ahead(less[1]) <= more[0] * _ahead(more[1])


def _ahead(prefetch: int | None) -> int:
    return PREFETCH if prefetch is None else prefetch
