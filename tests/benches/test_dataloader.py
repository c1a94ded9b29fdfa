"""The synthetic samples: three kinds, and how many workers suit each."""

from dataclasses import replace

from gputune import benches


def test_a_small_shared_memory_is_a_reason_not_to_run(two_cpus):
    small = replace(two_cpus, memory=replace(two_cpus.memory, shm_free_bytes=1 << 20))
    assert "--shm-size" in benches.load("dataloader").needs(small, "cpu")


def test_without_a_folder_for_temporary_files_workers_would_hang(two_cpus):
    closed = [replace(folder, writable=folder.variable != "TMPDIR") for folder in two_cpus.process.folders]
    facts = replace(two_cpus, process=replace(two_cpus.process, folders=tuple(closed)))
    assert "--tmpfs /tmp" in benches.load("dataloader").needs(facts, "cpu")
    assert benches.load("dataloader").needs(two_cpus, "cpu") is None
