from dataclasses import replace

import pytest
from recorded import facts_of, found

from gputune.checks import shm_size
from gputune.facts import Memory

NEED = 16 * 2 * 64 * 3 * 224 * 224 * 4  # of 16 workers: 1176 MiB


def finding(size, free=None, kind="docker", cpus=16):
    facts = facts_of(affinity=range(cpus))
    memory = Memory(shm_bytes=size, shm_free_bytes=size if free is None else free)
    [found] = shm_size.check(replace(facts, memory=memory, container=replace(facts.container, kind=kind)), ())
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
        ("docker", "docker run --shm-size={}g (or --ipc=host)"),
        ("podman", "docker run --shm-size={}g (or --ipc=host)"),
        ("kubernetes", "volumes: [{{name: shm, emptyDir: {{medium: Memory, sizeLimit: {}Gi}}}}]"),
        ("apptainer", "on the host: sudo mount -o remount,size={}G /dev/shm"),
        (None, "on the host: sudo mount -o remount,size={}G /dev/shm"),
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
