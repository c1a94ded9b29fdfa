"""What others used of the CPUs is what was used less our own; None where it cannot be known."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from recorded import RecordedHost

from gputune.facts.busy import Reading, read, ticks_of, used_by_others
from gputune.host import Host, Unreadable

TICKS = os.sysconf("SC_CLK_TCK")


def stat(*busy_seconds, column=0):
    lines = ["cpu  999999 0 0 0 0 0 0 0 0 0"]
    for cpu, seconds in enumerate(busy_seconds):
        counts = [0, 0, 0, 500000, 70000, 0, 0, 0, 0, 0]
        counts[column] = round(seconds * TICKS)
        lines.append(f"cpu{cpu} {' '.join(map(str, counts))}")
    return "\n".join([*lines, "intr 12345 6", "ctxt 1990473", "btime 1062191376"])


@pytest.mark.parametrize("column", range(10))
def test_idle_and_waiting_do_not_count_and_guests_are_counted_already(column):
    busy = 0 if column in (3, 4, 8, 9) else 3.5 * TICKS
    assert ticks_of(stat(1.5, 2, column=column), [0, 1]) == busy


def test_only_our_cpus_count():
    assert ticks_of(stat(1, 20, 3, 40), [0, 2]) == 4 * TICKS


@pytest.mark.parametrize(
    "text", ["", "cpu 1 2 3 4 5 6 7 8", stat(1), "cpu0 1 2 3\ncpu1 1 2 3", "cpu0 a b c d e f g h\ncpu1"]
)
def test_a_cpu_that_is_not_listed_is_unreadable(text):
    with pytest.raises(Unreadable):
        ticks_of(text, [0, 1])


@pytest.mark.parametrize(
    ("seconds", "busy", "own", "others"),
    [
        (10, 20, 20, 0.0),
        (10, 39, 20, 1.9),
        (10, 20, 0, 2.0),
        (10, 0, 0, 0.0),
        (10, 20.1, 20, 0.01),
        pytest.param(10, 19.5, 20, 0.0, id="the kernel's rounding"),
        pytest.param(10, 0, 20, None, id="a /proc/stat that never changes"),
        pytest.param(10, 20, -3, None, id="our own time lost with a process that was killed"),
        pytest.param(0.1, 0.1, 0.0, None, id="too short"),
    ],
)
def test_others_used_what_we_did_not(seconds, busy, own, others):
    before = Reading(at=5, busy=100, own=7)
    assert used_by_others(before, Reading(at=5 + seconds, busy=100 + busy, own=7 + own)) == others


def test_where_proc_stat_does_not_count_our_cpus_nothing_is_known():
    missing = read(RecordedHost("cpu-only", files={"/proc/stat": None}))
    counted = read(RecordedHost("cpu-only", files={"/proc/stat": stat(1, 1)}))
    assert (missing, counted.busy) == (None, 2.0)
    assert used_by_others(missing, counted) is used_by_others(counted, missing) is None


WORK = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


@pytest.mark.slow
def test_what_we_and_our_children_used_is_ours_while_they_live_and_after():
    before = Host().own_cpu_seconds()
    script = WORK.format(seconds=0.3) + "print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert Host().own_cpu_seconds() - before >= 0.25
        child.communicate(b"\n")
    assert 0.25 <= Host().own_cpu_seconds() - before < 3


@pytest.mark.slow
def test_this_machine():
    """Our own work is not counted as that of others."""
    before = read(Host())
    subprocess.run([sys.executable, "-c", WORK.format(seconds=0.5)], check=True)
    after = read(Host())
    others = used_by_others(before, after)
    if others is None:
        pytest.skip("/proc/stat does not count here")
    of_anybody = used_by_others(replace(before, own=0.0), replace(after, own=0.0))
    assert 0 <= others <= of_anybody - 0.3 / (after.at - before.at)
