"""How large /dev/shm is to be."""

import pytest

from gputune.checks import shm_size
from gputune.deploy import shared_memory

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    ("cpus", "memory_gib", "mebibytes"), [(1, 64, 1024), (4, 64, 1024), (16, 64, 4096), (224, 2048, 64 * 1024)]
)
def test_it_is_what_the_workers_of_so_many_cpus_need(cpus, memory_gib, mebibytes):
    assert shared_memory.mebibytes(cpus, memory_gib << 30) == mebibytes
    assert mebibytes << 20 >= cpus * 2 * shm_size.BATCH_BYTES


@pytest.mark.parametrize(("memory_mib", "mebibytes"), [(1024, 512), (16 * 1024, 8192), (1, 1)])
def test_it_takes_half_of_the_memory_at_most(memory_mib, mebibytes):
    assert shared_memory.mebibytes(224, memory_mib << 20) == mebibytes


def test_an_unknown_memory_is_no_limit():
    assert shared_memory.mebibytes(16, None) == 4096


@pytest.mark.parametrize(("mebibytes", "docker", "kubernetes"), [(8192, "8g", "8Gi"), (1536, "1536m", "1536Mi")])
def test_each_engine_writes_it_its_own_way(mebibytes, docker, kubernetes):
    assert shared_memory.amount(mebibytes, "g", "m") == docker
    assert shared_memory.amount(mebibytes, "Gi", "Mi") == kubernetes
