"""Memory limits along the cgroup chain, and /dev/shm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import RecordedHost, facts_of
from trees import CGROUP, grow, v1, v2

from gputune.facts import memory
from gputune.facts.gap import Gaps
from gputune.host import Unreadable

GIB = 2**30


def test_v2_limit(tmp_path):
    assert memory.limit(grow(tmp_path, v2("/a", {"a/memory.max": f"{4 * GIB}\n"}))) == 4 * GIB


def test_v1_limit(tmp_path):
    assert memory.limit(grow(tmp_path, v1("memory", "/a", {"a/memory.limit_in_bytes": f"{4 * GIB}\n"}))) == 4 * GIB


def test_the_tightest_limit_may_be_an_ancestor_s(tmp_path):
    host = grow(tmp_path, v2("/a/b", {"a/b/memory.max": f"{8 * GIB}", "a/memory.max": f"{2 * GIB}"}))
    assert memory.limit(host) == 2 * GIB


@pytest.mark.parametrize(
    "files",
    [
        v2("/", {}),
        v2("/", {"memory.max": "max\n"}),
        v1("memory", "/", {"memory.limit_in_bytes": "9223372036854771712\n"}),
    ],
)
def test_no_limit(tmp_path, files):
    assert memory.limit(grow(tmp_path, files)) is None


@given(st.text(alphabet="0123456789max- \n٣", max_size=40) | st.text())
def test_any_text_is_a_limit_none_or_unreadable(text):
    host = RecordedHost("cpu-only", files={f"{CGROUP}/memory.max": text})
    try:
        found = memory.limit(host)
    except Unreadable:
        return
    assert found is None or found >= 0


def test_a_recorded_machine():
    found = facts_of().memory
    assert found.total_bytes == 131981020 * 1024
    assert found.limit_bytes is None
    assert found.shm_bytes == found.shm_free_bytes == 128 * GIB


def test_used_shared_memory_counts():
    shm = [4096, 4096, 16384, 1024, 1024, 100, 100, 100, 0, 255]
    found = facts_of(shm=shm).memory
    assert (found.shm_bytes, found.shm_free_bytes) == (64 * 2**20, 4 * 2**20)


def test_what_cannot_be_read_is_a_gap(tmp_path):
    gaps = Gaps()
    found = memory.read(grow(tmp_path, {}), gaps)
    assert (found.limit_bytes, found.shm_bytes, found.shm_free_bytes) == (None, None, None)
    assert {"memory.limit_bytes", "memory.shm_bytes"} <= {gap.fact for gap in gaps.found}
