"""Limits are found at every level from the process's own group up, in each layout that the kernel and runtimes make."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import RecordedHost
from trees import CGROUP, grow, v1, v2

from gputune.host import Unreadable
from gputune.resources import cgroup

LINES = st.text(alphabet="0123456789:/,.- \ncpumemorycgroup2", max_size=120)


def memory(host):
    return list(cgroup.values(host, "memory", "memory.limit_in_bytes", "memory.max"))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (v2("/a/b", {"a/memory.max": "2", "a/b/memory.max": "1"}), [("a/b/memory.max", "1"), ("a/memory.max", "2")]),
        (
            v1("memory", "/a", {"memory.limit_in_bytes": "3", "a/memory.limit_in_bytes": "1"}),
            [("memory/a/memory.limit_in_bytes", "1"), ("memory/memory.limit_in_bytes", "3")],
        ),
        (
            v1("memory", "/a", {"a/memory.limit_in_bytes": "1"}, unified=True),
            [("memory/a/memory.limit_in_bytes", "1")],
        ),
        (v1("cpu,memory", "/a", {"a/memory.limit_in_bytes": "1"}), [("cpu,memory/a/memory.limit_in_bytes", "1")]),
        (v2("/", {"memory.max": "1"}), [("memory.max", "1")]),
        (
            v1("memory", "/docker/abc", {"memory.limit_in_bytes": "1"}, root="/docker/abc"),
            [("memory/memory.limit_in_bytes", "1")],
        ),
        (v2("/system.slice/docker-abc.scope", {"memory.max": "1"}), [("memory.max", "1")]),
        (
            v2("/kubepods/pod1/mine", {"mine/memory.max": "1", "memory.max": "2"}),
            [("mine/memory.max", "1"), ("memory.max", "2")],
        ),
        (
            v1("memory", "/../mine", {"memory.limit_in_bytes": "9", "mine/memory.limit_in_bytes": "1"}, root="/.."),
            [("memory/mine/memory.limit_in_bytes", "1"), ("memory/memory.limit_in_bytes", "9")],
        ),
        (v2("/", {}), []),
    ],
    ids=[
        "v2", "v1", "a hybrid host's unified line hides no v1 limit", "controllers share a hierarchy",
        "a private namespace calls its group the root", "a container without one sees its group as the mount's root",
        "a host path that is not here leads to the mount", "the tail of a host path is here",
        "a group below the parent that is shown", "no limit",
    ],
)  # fmt: skip
def test_limits_come_innermost_first_in_every_layout(tmp_path, files, expected):
    assert memory(grow(tmp_path, files)) == [(f"{CGROUP}/{path}", text) for path, text in expected]


def test_a_mount_that_shows_only_the_parent_is_no_proof_of_no_limit(tmp_path):
    """`unshare -C` after the mount was made: the group's own name is nowhere to be read."""
    host = grow(
        tmp_path, v1("memory", "/", {"memory.limit_in_bytes": "9", "mine/memory.limit_in_bytes": "1"}, root="/..")
    )
    with pytest.raises(Unreadable, match="parent"):
        memory(host)


def test_other_mounts_and_broken_lines_are_passed_over(tmp_path):
    files = v2("/", {"memory.max": "1"})
    other = (
        "50 20 0:40 / /mnt rw - overlay overlay rw,memory\n51 20 0:41 / /broken - cgroup2\n52 - cgroup2 cgroup2 rw\n"
    )
    files["/proc/self/mountinfo"] = other + files["/proc/self/mountinfo"]
    host = grow(tmp_path, {**files, "/mnt/memory.limit_in_bytes": "7", "/broken/memory.max": "7"})
    assert memory(host) == [(f"{CGROUP}/memory.max", "1")]


def test_without_mountinfo_the_usual_mount_is_asked(tmp_path):
    files = v2("/a", {"a/memory.max": "1"})
    del files["/proc/self/mountinfo"]
    assert memory(grow(tmp_path, files)) == [(f"{CGROUP}/a/memory.max", "1")]


@pytest.mark.parametrize("files", [{}, {"/proc/self/cgroup": "0::/\n"}, {"/proc/self/cgroup": "nonsense\n"}])
def test_no_hierarchy_with_the_controller_is_unreadable(tmp_path, files):
    with pytest.raises(Unreadable):
        memory(grow(tmp_path, files))


@given(groups=LINES, mounts=LINES, limit=LINES)
def test_any_text_gives_limits_or_unreadable(groups, mounts, limit):
    files = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts, f"{CGROUP}/memory.max": limit}
    host = RecordedHost("cpu-only", files=files)
    with suppress(Unreadable):
        assert all(text == limit for _, text in memory(host))


LEVELS = st.lists(st.sampled_from(["a", "b", "c", ".."]), max_size=6)


def expected(host):
    parts = host.read("/proc/self/cgroup").strip().removeprefix("0::").split("/")[1:]
    tails = [parts[start:] for start in range(len(parts) + 1)]
    tail = next(tail for tail in tails if ".." not in tail and host.exists("/".join([CGROUP, *tail])))
    folders = ["/".join([CGROUP, *tail[:length]]) for length in range(len(tail), -1, -1)]
    return [f"{folder}/memory.max" for folder in folders if f"{folder}/memory.max" in host.files]


@pytest.mark.slow
@given(group=LEVELS, inside=st.lists(LEVELS, max_size=4))
def test_the_longest_tail_that_exists_is_found(group, inside):
    limits = {"/".join([*parts, "memory.max"]): "1" for parts in inside if ".." not in parts}
    host = RecordedHost("cpu-only", files=v2("/" + "/".join(group), {"memory.max": "1", **limits}))
    assert [path for path, _ in memory(host)] == expected(host)
