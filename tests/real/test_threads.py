"""Threads of programs inside a real quota of cgroup v1, with profiles that were measured outside of it.

`pytest -m real` runs them; they need root and two CPUs.
"""

import os
import sys

import pytest
from making import H200, command, environ, profile, written

from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = [pytest.mark.real, pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")]

SHOW = "import os, torch; print(torch.get_num_threads(), os.environ.get('OMP_NUM_THREADS'), flush=True)"
APPLY = "import gputune, torch; gputune.apply({!r}); print(torch.get_num_threads())"
GPUTUNE = [sys.executable, "-m", "gputune", "apply", "--quiet"]
PYTHON = [sys.executable, "-c", SHOW]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--master-port=0", "--no-python"]
OWN = len(os.sched_getaffinity(0))


@pytest.fixture
def run(cgroup):
    group = cgroup(cpus=1)

    def run(*words, **variables):
        done = command([*group.words, *words], environ(**variables))
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.splitlines())

    return run


@pytest.fixture(params=["of another machine", "of this one, outside"])
def path(request, tmp_path):
    there = H200 if request.param == "of another machine" else local_fingerprint(Host())
    return written(tmp_path, profile({"omp_threads": None}, there))


def test_a_program_has_as_many_threads_as_the_quota_has_cpus(run, path):
    assert run(*PYTHON) == [f"{OWN} None"]
    assert run(*GPUTUNE, path, "--", *PYTHON) == ["1 1"]
    assert run(*GPUTUNE, "--only", "omp_threads", path, "--", *PYTHON) == ["1 1"]
    assert run(sys.executable, "-c", APPLY.format(path)) == ["1"]


def test_what_the_user_chose_wins(run, path):
    chosen = str(OWN)
    assert run(*GPUTUNE, path, "--", *PYTHON, OMP_NUM_THREADS=chosen) == [f"{OWN} {chosen}"]
    assert run(sys.executable, "-c", APPLY.format(path), OMP_NUM_THREADS=chosen) == [chosen]
    for option in ("--numerics=exact", "--skip=omp_threads", "--only=cudnn_tf32"):
        assert run(*GPUTUNE, option, path, "--", *PYTHON) == [f"{OWN} None"]


def test_ranks_share_the_quota(run, path):
    assert run(*GPUTUNE, path, "--", *TORCHRUN, "--nproc-per-node=1", *PYTHON) == ["1 None"]
    assert run(*GPUTUNE, path, "--", *TORCHRUN, "--nproc-per-node=2", *PYTHON) == ["1 1"] * 2
