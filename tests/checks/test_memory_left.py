from dataclasses import replace

import pytest
from recorded import facts_of, found

from gputune.checks import memory_left

GROUP, GIB = "/sys/fs/cgroup/job", 1 << 30


def of_group(used, cache=0, limit=100 * GIB, **files):
    stat = None if cache is None else f"anon 7\ninactive_file {cache}\nactive_file {cache // 2}\n"
    group = {f"{GROUP}/memory.max": limit, f"{GROUP}/memory.current": used, f"{GROUP}/memory.stat": stat}
    group = {path: None if text is None else str(text) for path, text in group.items()}
    [only] = found(memory_left, files=group | files)
    return only


def of_host(meminfo):
    [only] = found(memory_left, "cpu-only", files={"/proc/meminfo": meminfo})
    return only


@pytest.mark.parametrize(
    ("used", "left"), [(90 * GIB + 1, "10.0 GiB"), (99 * GIB + GIB // 2, "512 MiB"), (101 * GIB, "0 KiB")]
)
def test_little_left_of_a_group_s_limit_is_a_warning(used, left):
    warned = of_group(used)
    assert warned.severity == "WARNING"
    assert warned.message == f"{left} is left of this group's limit of 100.0 GiB"
    assert warned.remedy.startswith("docker run --memory=126g IMAGE  # ")
    assert "fewer DataLoader workers" in warned.remedy


@pytest.mark.parametrize("used", [0, 90 * GIB])
def test_a_tenth_left_is_fine(used):
    assert of_group(used).severity == "OK"


def test_the_file_cache_gives_way():
    fine = of_group(99 * GIB, cache=40 * GIB)
    assert (fine.severity, fine.message) == ("OK", "61.0 GiB is left of this group's limit of 100.0 GiB")


def test_a_limit_is_no_help_where_the_host_itself_has_little_left():
    warned = of_group(0, **{"/proc/meminfo": f"MemTotal: {125 << 20} kB\nMemAvailable: {1 << 20} kB\n"})
    assert (warned.severity, warned.message) == ("WARNING", "1.0 GiB is left of the host's memory of 125.0 GiB")
    assert "ps aux" in warned.remedy


@pytest.mark.parametrize("meminfo", [f"MemTotal: {125 << 20} kB\n", None])
@pytest.mark.parametrize(("used", "severity"), [(0, "UNKNOWN"), (99 * GIB, "WARNING")])
def test_what_the_host_has_left_is_unknown_unless_the_group_s_limit_is_close(meminfo, used, severity):
    assert of_group(used, **{"/proc/meminfo": meminfo}).severity == severity


def test_the_host_s_warning_goes_before_a_limit_that_cannot_be_read():
    little = {"/proc/meminfo": f"MemTotal: {125 << 20} kB\nMemAvailable: {1 << 20} kB\n"}
    assert of_group(0, limit="garbage", **little).severity == "WARNING"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"used": 1, "limit": "garbage"}, "garbage"),
        ({"used": None}, "memory.current"),
        ({"used": 1, "cache": None}, "memory.stat"),
    ],
)
def test_a_group_s_memory_that_cannot_be_read_is_unknown(answers, reason):
    unread = of_group(**answers)
    assert unread.severity == "UNKNOWN"
    assert reason in unread.message


def test_a_part_of_an_unknown_whole_is_unknown():
    facts = facts_of("cpu-only")
    [unread] = memory_left.check(replace(facts, memory=replace(facts.memory, total_bytes=None)), ())
    assert unread.severity == "UNKNOWN"


def test_without_a_limit_the_host_s_memory_counts():
    warned = of_host("MemTotal: 104857600 kB\nMemAvailable: 10485759 kB\n")
    assert (warned.severity, warned.message) == ("WARNING", "10.0 GiB is left of the host's memory of 100.0 GiB")
    assert "ps aux --sort=-rss" in warned.remedy


@pytest.mark.parametrize(
    ("limit", "what"), [(131981020 * 1024, "this group's limit"), (131981020 * 1024 + 1, "the host's memory")]
)
def test_a_limit_that_the_host_cannot_keep_is_none(limit, what):
    assert f"is left of {what} of 125.9 GiB" in of_group(0, limit=limit).message


def test_where_the_host_s_memory_is_not_known_a_limit_tells_only_half():
    facts = facts_of()
    [unread] = memory_left.check(replace(facts, memory=replace(facts.memory, total_bytes=None)), ())
    assert (unread.severity, "the host's memory" in unread.message) == ("UNKNOWN", True)


def test_a_tenth_left_of_the_host_s_memory_is_fine():
    assert of_host("MemTotal: 104857600 kB\nMemAvailable: 10485760 kB\n").severity == "OK"


@pytest.mark.parametrize(("left", "severity"), [((16 << 20) - 1, "WARNING"), (16 << 20, "OK")])
def test_of_a_large_memory_less_than_a_tenth_is_plenty(left, severity):
    assert of_host(f"MemTotal: {1 << 30} kB\nMemAvailable: {left} kB\n").severity == severity


@pytest.mark.parametrize(("meminfo", "reason"), [("MemTotal: 9 kB\n", "MemAvailable"), (None, "No such file")])
def test_a_host_s_memory_that_cannot_be_read_is_unknown(meminfo, reason):
    unread = of_host(meminfo)
    assert unread.severity == "UNKNOWN"
    assert reason in unread.message
