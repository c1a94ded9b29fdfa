"""Real groups of cgroup v1, each for one test, or for what the tests of a file share; what ran in one must have left
it at the end.
"""

import os
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

V1 = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
LEAVING_SECONDS = 5.0
"""What was killed may take a moment to go."""


class Group:
    """One group in the cpu and in the memory hierarchy, with these limits: `cpus` is a quota, `memory_bytes` includes
    /dev/shm's.
    """

    def __init__(self, name, cpus=None, memory_bytes=None):
        self.cpu, self.memory = V1 / "cpu" / name, V1 / "memory" / name
        for folder in (self.cpu, self.memory):
            folder.mkdir()
        if cpus is not None:
            (self.cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.cpu / "cpu.cfs_quota_us").write_text(str(int(cpus * PERIOD_US)))
        if memory_bytes is not None:
            (self.memory / "memory.limit_in_bytes").write_text(str(memory_bytes))

    @property
    def words(self):
        """Before a command's own, they put it into the group."""
        join = f"echo $$ > {self.cpu}/cgroup.procs && echo $$ > {self.memory}/cgroup.procs"
        return ["sh", "-c", f'{join} && exec "$@"', "sh"]

    @property
    def oom_kills(self):
        rows = dict(line.split() for line in (self.memory / "memory.oom_control").read_text().splitlines())
        return int(rows["oom_kill"])

    def left(self, seconds=LEAVING_SECONDS):
        """The command lines of what is still in the group after so long."""
        deadline = time.monotonic() + seconds
        while (pids := (self.cpu / "cgroup.procs").read_text().split()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return [command_line(pid) for pid in pids]

    def remove(self):
        for folder in (self.cpu, self.memory):
            folder.rmdir()


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return pid


NUMBERS = count()


@contextmanager
def made():
    """A function that makes a Group with the limits that it is given."""
    files = [V1 / name / "cgroup.procs" for name in ("cpu", "memory")]
    if os.geteuid() or not all(os.access(file, os.W_OK) for file in files):
        pytest.skip("needs root and writable cgroup v1 hierarchies of cpu and memory")
    groups = []

    def make(**limits):
        groups.append(Group(f"gputune-real-{os.getpid()}-{next(NUMBERS)}", **limits))
        return groups[-1]

    yield make
    left = [line for group in groups for line in group.left()]
    assert not left
    for group in groups:
        group.remove()


@pytest.fixture
def cgroup():
    with made() as make:
        yield make


@pytest.fixture(scope="module")
def cgroup_of_file():
    with made() as make:
        yield make
