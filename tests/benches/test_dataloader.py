"""The synthetic samples: three kinds, and how many workers suit each."""

from dataclasses import replace

from gputune import benches
from gputune.bench_process import Context


def test_a_small_shared_memory_is_a_reason_not_to_run(two_cpus):
    small = replace(two_cpus, memory=replace(two_cpus.memory, shm_free_bytes=1 << 20))
    assert "--shm-size" in benches.load("dataloader").needs(small, "cpu")


def test_without_a_folder_for_temporary_files_workers_would_hang_and_nothing_is_measured(two_cpus, monkeypatch):
    bench = benches.load("dataloader")
    monkeypatch.setattr(bench, "temporary_folder", lambda: False)
    [gap] = bench.measure(Context(device="cpu", facts=two_cpus, seconds=1, budget="quick"))
    assert (gap.fact, "--tmpfs /tmp" in gap.reason) == ("bench.dataloader", True)
