"""Memory limits along the cgroup chain, and /dev/shm."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from recorded import RecordedHost, facts_of
from trees import CGROUP, grow, v1, v2

from gputune.facts import memory
from gputune.facts.gap import Gaps
from gputune.host import Unreadable

GIB = 2**30


@pytest.mark.parametrize(
    ("files", "limit", "source"),
    [
        (v2("/a", {"a/memory.max": f"{4 * GIB}\n"}), 4 * GIB, "a/memory.max"),
        (v1("memory", "/a", {"a/memory.limit_in_bytes": f"{4 * GIB}\n"}), 4 * GIB, "memory/a/memory.limit_in_bytes"),
        (v2("/a/b", {"a/b/memory.max": f"{8 * GIB}", "a/memory.max": f"{2 * GIB}"}), 2 * GIB, "a/memory.max"),
    ],
    ids=["v2", "v1", "the tightest is an ancestor's"],
)
def test_a_limit_and_the_file_that_sets_it(tmp_path, files, limit, source):
    assert memory.limit(grow(tmp_path, files)) == (limit, f"{CGROUP}/{source}")


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


@pytest.mark.slow
@given(st.text(alphabet="0123456789max- \n٣", max_size=40) | st.text())
@example("0\x1f")  # to strip() a space, to int() none
def test_any_text_is_a_limit_none_or_unreadable(text):
    host = RecordedHost("cpu-only", files={f"{CGROUP}/memory.max": text})
    try:
        found = memory.limit(host)
    except Unreadable:
        return
    assert found is None or found[0] >= 0


def test_a_recorded_machine():
    found = facts_of().memory
    assert (found.total_bytes, found.limit_bytes) == (131981020 * 1024, 128 * GIB)
    assert found.limit_free_bytes < found.limit_bytes
    assert found.free_bytes < found.total_bytes
    assert found.shm_bytes == found.shm_free_bytes == 128 * GIB


V2 = {
    "memory.max": f"{4 * GIB}",
    "memory.current": f"{3 * GIB}",
    "memory.stat": f"anon 1\ninactive_file {GIB // 2}\nactive_file {GIB // 2}\n",
}
V1 = {
    "memory.limit_in_bytes": f"{4 * GIB}",
    "memory.usage_in_bytes": f"{3 * GIB}",
    "memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}\ntotal_active_file {GIB // 2}\n",
}


@pytest.mark.parametrize("files", [v2("/", V2), v1("memory", "/", V1)])
def test_the_file_cache_gives_way(tmp_path, files):
    assert memory.read(grow(tmp_path, files), Gaps()).limit_free_bytes == 2 * GIB


@pytest.mark.parametrize("missing", ["memory.current", "memory.stat"])
def test_a_limit_whose_use_cannot_be_read_leaves_a_gap(tmp_path, missing):
    gaps = Gaps()
    files = v2("/", {name: text for name, text in V2.items() if name != missing})
    assert memory.read(grow(tmp_path, files), gaps).limit_free_bytes is None
    assert "memory.limit_free_bytes" in [gap.fact for gap in gaps.found]


V1_OOM = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
V2_OOM = "low 0\nhigh 7\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"


@pytest.mark.parametrize(
    "files",
    [
        v1("memory", "/a", {"a/memory.oom_control": V1_OOM, "memory.oom_control": "oom_kill 70\n"}),
        v1("memory", "/a", {"a/memory.oom_control": V1_OOM}, unified=True),
        v2("/a/b", {"a/b/memory.events": V2_OOM, "a/memory.events": "oom_kill 70\n"}),
        v2("/a/b", {"a/b/cgroup.procs": "", "a/memory.events": V2_OOM}),  # the controller reaches down to /a only
    ],
)
def test_oom_kills_are_counted_in_the_process_s_own_group(tmp_path, files):
    assert memory.oom_kills(grow(tmp_path, files)) == 3


@pytest.mark.parametrize(
    "files",
    [
        {},
        v2("/", {}),  # the root group has no events
        v1("memory", "/", {"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}),  # before Linux 4.13
        v1("memory", "/", {"memory.oom_control": V1_OOM}, root="/.."),  # a parent's, not ours
    ],
)
def test_oom_kills_that_nobody_tells_of_are_unknown(tmp_path, files):
    assert memory.oom_kills(grow(tmp_path, files)) is None


def test_used_shared_memory_counts():
    shm = [4096, 4096, 16384, 1024, 1024, 100, 100, 100, 0, 255]
    found = facts_of(shm=shm).memory
    assert (found.shm_bytes, found.shm_free_bytes) == (64 * 2**20, 4 * 2**20)


def test_what_cannot_be_read_is_a_gap(tmp_path):
    gaps = Gaps()
    found = memory.read(grow(tmp_path, {}), gaps)
    assert (found.limit_bytes, found.shm_bytes, found.shm_free_bytes) == (None, None, None)
    assert {"memory.limit_bytes", "memory.shm_bytes"} <= {gap.fact for gap in gaps.found}
