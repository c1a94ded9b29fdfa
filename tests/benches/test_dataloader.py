"""The synthetic samples: three kinds, and how many workers suit each."""

from dataclasses import replace

from gputune import benches


def test_a_small_shared_memory_is_a_reason_not_to_run(two_cpus):
    small = replace(two_cpus, memory=replace(two_cpus.memory, shm_free_bytes=1 << 20))
    assert "--shm-size" in benches.load("dataloader").needs(small, "cpu")
