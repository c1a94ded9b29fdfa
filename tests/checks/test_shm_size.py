from dataclasses import replace

import pytest
from making import row
from recorded import facts_of, found

from gputune.checks import shm_size
from gputune.facts import Memory
from gputune.measurement import Measurement

NEED = 16 * 2 * 64 * 3 * 224 * 224 * 4  # of 16 workers: 1176 MiB


def finding(size, free=None, kind="docker", cpus=16, measurements=()):
    facts = facts_of(affinity=range(cpus))
    memory = Memory(shm_bytes=size, shm_free_bytes=size if free is None else free)
    [found] = shm_size.check(replace(facts, memory=memory, container=replace(facts.container, kind=kind)), measurements)
    return found


@pytest.mark.parametrize(
    ("size", "told"),
    [(0, "0 KiB"), (64 << 10, "64 KiB"), (64 << 20, "64 MiB"), (1 << 30, "1.0 GiB"), (NEED - 1, "1.1 GiB")],
)
def test_too_small(size, told):
    found = finding(size)
    assert (found.severity, found.subject) == ("WARNING", "/dev/shm")
    assert f"/dev/shm holds {told}" in found.message
    assert "16 CPUs would need about 1.1 GiB" in found.message


def test_large_enough():
    found = finding(NEED)
    assert (found.severity, found.message) == ("OK", "/dev/shm holds 1.1 GiB")


@pytest.mark.parametrize(
    ("size", "cpus", "severity"), [(64 << 20, 1, "WARNING"), (1 << 30, 8, "OK"), (1 << 32, 64, "WARNING")]
)
def test_each_cpu_may_have_a_worker(size, cpus, severity):
    assert finding(size, cpus=cpus).severity == severity


@pytest.mark.parametrize(("cpus", "size"), [(1, 1), (2, 1), (16, 4), (64, 16), (128, 32)])
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("docker", "docker run --shm-size={}g IMAGE  # "),
        ("podman", "podman run --shm-size={}g IMAGE  # "),
        ("kubernetes", "spec: {{volumes: [{{name: shm, emptyDir: {{medium: Memory, sizeLimit: {}Gi}}}}], "),
        ("apptainer", "sudo mount -o remount,size={}G /dev/shm  # on the host, as root; "),
        (None, "sudo mount -o remount,size={}G /dev/shm  # on the host, as root; "),
    ],
)
def test_the_remedy_makes_room_for_twice_the_need_where_it_can_be_made(cpus, size, kind, remedy):
    assert remedy.format(size) in finding(1 << 20, cpus=cpus, kind=kind).remedy


def test_large_enough_but_full():
    found = finding(8 << 30, free=NEED - 1)
    assert (found.severity, found.subject) == ("WARNING", "/dev/shm")
    assert "/dev/shm holds 8.0 GiB, of which 1.1 GiB is free" in found.message
    assert "need about 1.1 GiB" in found.message
    assert found.remedy.startswith("ls -l /dev/shm")


def test_large_enough_and_free_enough():
    assert finding(8 << 30, free=NEED).severity == "OK"


def test_unread():
    [unread] = found(shm_size, shm=None)
    assert unread.severity == "UNKNOWN"
    assert "/dev/shm" in unread.message


def dataset(rates, sent=True, batch_bytes=64 * 3 * 224 * 224 * 4):
    """The rows of `gputune probe --dataset`: rates by number of workers, and the bytes of a batch."""
    params = {"kind": "dataset", "batch": 64} | ({} if sent else {"sent": False})
    size = Measurement(bench="dataset", metric="batch_bytes", unit="B", samples=(float(batch_bytes),), device="cpu")
    return [size, *(row("dataset", "throughput", rate, workers=count, **params) for count, rate in rates.items())]


FOUR = dataset({0: 100.0, 4: 400.0})
EXACT = 409 << 20  # (4 workers x 2 + 2) batches of 36.75 MiB, in nine tenths of it


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("docker", "docker run --shm-size=409m IMAGE"),
        ("podman", "podman run --shm-size=409m IMAGE"),
        (
            "kubernetes",
            "spec: {volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 409Mi}}], "
            "containers: [{name: NAME, volumeMounts: [{name: shm, mountPath: /dev/shm}]}]}",
        ),
        ("apptainer", "sudo mount -o remount,size=409M /dev/shm"),
        (None, "sudo mount -o remount,size=409M /dev/shm"),
    ],
)
def test_for_a_measured_dataset_the_size_is_exact(kind, remedy):
    found = finding(64 << 20, kind=kind, measurements=FOUR)
    assert (found.severity, found.subject, found.remedy.split("  # ")[0]) == ("WARNING", "/dev/shm", remedy)
    assert found.message == (
        "/dev/shm holds 64 MiB, and the best setting for the measured dataset, "
        "4 workers x 2 batches of 36.8 MiB in flight, needs 409 MiB"
    )


def test_the_size_that_is_asked_for_is_enough():
    assert finding(EXACT - 1, measurements=FOUR).severity == "WARNING"
    found = finding(EXACT, measurements=FOUR)
    assert found.severity == "OK"
    assert found.message.endswith("MiB; the best setting for the measured dataset, "
                                  "4 workers x 2 batches of 36.8 MiB in flight, needs 409 MiB")  # fmt: skip


def test_a_measured_dataset_counts_for_more_than_the_cpus():
    assert finding(EXACT, cpus=64, measurements=FOUR).severity == "OK"
    assert finding(EXACT, cpus=64).severity == "WARNING"


def test_what_could_not_be_handed_over_tells_the_size_all_the_same():
    rows = dataset({0: 100.0, 8: 800.0}, sent=False) + dataset({0: 100.0})
    found = finding(64 << 20, measurements=rows)
    assert "8 workers x 2 batches of 36.8 MiB in flight, needs 735 MiB" in found.message
    assert "--shm-size=735m" in found.remedy


def test_for_a_measured_dataset_large_enough_but_full():
    found = finding(8 << 30, free=EXACT - 1, measurements=FOUR)
    assert (found.severity, found.remedy[:15]) == ("WARNING", "ls -l /dev/shm ")
    assert found.message.startswith("/dev/shm holds 8.0 GiB, of which 409 MiB is free, and the best setting")


def test_batches_of_a_gibibyte_and_more_have_all_their_digits():
    rows = dataset({0: 100.0, 4: 400.0}, batch_bytes=1234 << 20)
    assert "batches of 1234 MiB in flight, needs 13712 MiB" in finding(64 << 20, measurements=rows).message


def test_a_dataset_that_is_best_loaded_without_workers_leaves_the_usual_estimate():
    assert finding(64 << 20, measurements=dataset({0: 100.0, 4: 90.0})) == finding(64 << 20)
