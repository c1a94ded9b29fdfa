"""The need of /dev/shm: (workers x prefetch_factor + 2) of the dataset's batches, in nine tenths of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import row
from recorded import facts_of

from gputune.checks.shm_size import Need, needed
from gputune.checks.shm_size import need as _need
from gputune.knobs.dataloader_prefetch_factor import HELD, PREFETCH, SHARE
from gputune.live.loading import fitting
from gputune.measurement import Measurement

MIB = 1 << 20
IMAGES = 64 * 3 * 224 * 224 * 4


def batch_bytes(*sizes: float) -> Measurement:
    return Measurement(bench="dataset", metric="batch_bytes", unit="B", samples=sizes, device="cpu")


def loaded(rates: dict[int, float], bench: str = "dataset", kind: str = "dataset", **params: Any) -> list[Any]:
    return [
        row(bench, "throughput", rate, kind=kind, workers=count, batch=64, **params) for count, rate in rates.items()
    ]


def need(rows: list[Any]) -> Need | None:
    return _need(facts_of(), rows)


CURVE = loaded({0: 100.0, 4: 400.0, 8: 404.0})


@pytest.mark.parametrize(
    ("rows", "workers"),
    [
        ([batch_bytes(IMAGES), *CURVE], 4),
        ([batch_bytes(1.0, IMAGES, 2.0), *CURVE], 4),
        ([batch_bytes(IMAGES), *loaded({0: 100.0, 8: 800.0}, sent=False), *loaded({0: 100.0, 1: 99.0})], 8),
        ([batch_bytes(IMAGES), *loaded({0: 100.0, 2: 300.0, 8: 301.0}, sent=False), *CURVE], 4),
        ([batch_bytes(IMAGES), *loaded({0: 100.0, 4: 400.0}, prefetch_factor=1)], 4),
    ],
    ids=[
        "of the workers that are recommended",
        "of the largest batch that was seen",
        "of the workers that would be the best if there were room for them",
        "of no fewer workers than are recommended",
        "of torch's prefetch_factor where it gave way",
    ],
)
def test_the_need_of_a_dataset(rows: list[Any], workers: int) -> None:
    assert need(rows) == Need(workers=workers, batch_bytes=IMAGES, shm_bytes=needed(workers, IMAGES))


def test_ten_batches_in_nine_tenths_of_it() -> None:
    assert needed(4, IMAGES) == 409 * MIB  # batches of 36.75 MiB


@pytest.mark.parametrize(
    "rows",
    [
        [],
        CURVE,
        [batch_bytes(IMAGES)],
        [batch_bytes(IMAGES), *loaded({0: 100.0, 4: 90.0})],
        [batch_bytes(IMAGES), *loaded({0: 100.0}, same_samples=True)],
        [batch_bytes(IMAGES), *loaded({0: 1.0, 4: 4.0}, "dataloader", "decoding")],
    ],
    ids=["nothing", "no batch", "no rate", "no gain", "every worker yields all", "only synthetic samples"],
)
def test_there_is_none(rows: list[Any]) -> None:
    assert need(rows) is None


SIZES = st.integers(1, 1 << 34) | st.integers(1, 200).map(lambda number: number * 4718592)  # nine tenths of 5 MiB


@given(st.integers(1, 256), SIZES)
def test_so_much_holds_the_batches_and_a_mebibyte_less_does_not(workers: int, size: int) -> None:
    room = needed(workers, size)
    assert room % MIB == 0
    assert int(SHARE * room / size - HELD) >= workers * PREFETCH
    assert SHARE * (room - MIB) < (workers * PREFETCH + HELD) * size
    assert fitting(workers, None, size, room) == (workers, None)
