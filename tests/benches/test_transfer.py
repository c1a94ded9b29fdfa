"""Copies and kernel launches: what is counted, how much fits, and memory that cannot be pinned."""

import time
from dataclasses import replace
from typing import Any

import pytest
from loaded import on_cpu, sorted_out

from gputune.bench_process import Context
from gputune.benches import transfer
from gputune.benches._timing import Arm, Metric, interleave
from gputune.facts.gap import Gap

MIB = 1 << 20


@pytest.fixture
def context() -> Context:
    """A CPU stands in for the GPU: copies are copies."""
    return on_cpu("thorough")


@pytest.fixture
def no_pinning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU torch pins nothing; with one, it is made to fail alike."""
    import torch

    empty = torch.empty

    def refusing(*size: int, pin_memory: bool = False, **options: Any) -> Any:
        if pin_memory:
            raise RuntimeError("CUDA error: out of memory\nmore of it")
        return empty(*size, **options)

    monkeypatch.setattr(torch, "empty", refusing)


def test_copies_are_smaller_where_they_would_not_fit() -> None:
    assert transfer.sizes(140 << 30) == (256 * MIB, 1024 * MIB)
    host, device = transfer.sizes(1 << 30)
    assert host + 2 * device < 1 << 30


def test_memory_that_cannot_be_pinned_is_a_gap_and_the_rest_is_measured(context: Context, no_pinning: None) -> None:
    gap, *arms = transfer.host_copies(context, MIB)
    assert gap == Gap(fact="bench.transfer", reason="no 1 MiB of pinned memory: CUDA error: out of memory")
    assert [arm.params for arm in arms] == [
        {"copy": "host to device", "pinned": False},
        {"copy": "device to host", "pinned": False},
    ]


def test_the_data_arrives(context: Context, no_pinning: None) -> None:
    import torch

    to_device, to_host = (arm for arm in transfer.host_copies(context, MIB) if isinstance(arm, Arm))
    there, here = to_device.run.func.__self__, to_host.run.func.__self__
    assert there is not here
    here.fill_(7)
    to_device.run()
    assert torch.equal(there, here)
    there.fill_(8)
    to_host.run()
    assert bool((here == 8).all())


def test_inside_the_device_both_what_is_read_and_what_is_written_count(context: Context, no_pinning: None) -> None:
    inside = transfer.device_copy(context, MIB)
    one_way = [arm.work for arm in transfer.host_copies(context, MIB) if isinstance(arm, Arm)]
    assert one_way == [MIB / 1e9] * 2
    assert inside.work == 2 * MIB / 1e9
    assert inside.params == {"copy": "device"}


def test_rows_are_gigabytes_in_a_second(context: Context) -> None:
    arm = replace(transfer.device_copy(context, MIB), run=lambda: time.sleep(0.001))
    (row,) = interleave(context, [arm], 5.0, Metric("transfer", "GB/s"), block_seconds=0.01)
    fastest = 2 * MIB / 1e9 / 0.001
    assert fastest / 10 < row.median <= fastest
    assert len(row.samples) == 12


def test_a_launch_takes_microseconds(context: Context) -> None:
    row = transfer.latency(context)
    assert (row.metric, row.unit, row.params) == ("latency", "us", {})
    assert len(row.samples) == 12
    assert 0.1 < row.median < 1000


@pytest.mark.slow
def test_all_of_it(context: Context, no_pinning: None, monkeypatch: pytest.MonkeyPatch, twelve_rounds: Any) -> None:
    monkeypatch.setattr(transfer, "interleave", twelve_rounds)
    monkeypatch.setattr(Context, "free_bytes", lambda self: 32 * MIB)
    rows, gaps = sorted_out(transfer.measure(context))
    assert [gap.reason for gap in gaps] == ["no 4 MiB of pinned memory: CUDA error: out of memory"]
    assert [(row.metric, row.params.get("copy")) for row in rows] == [
        ("latency", None), ("throughput", "host to device"), ("throughput", "device to host"), ("throughput", "device"),
    ]  # fmt: skip
