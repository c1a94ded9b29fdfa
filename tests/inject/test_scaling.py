"""Workers for other CPUs than were measured with, and for what shared memory holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.inject.loading import fitting, scaled
from gputune.settings._loading_rows import HELD, PREFETCH
from gputune.settings.dataloader_workers import LIMITS

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


def test_batches_of_no_size_always_fit() -> None:
    assert fitting(8, 4, 0, 0) == (8, 4)


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
