"""What others used of the CPUs is what was used less our own; where it cannot be told, nothing is said."""

import os
import subprocess
import sys

import pytest
from recorded import RecordedHost

from gputune.host import Host, Unreadable
from gputune.probing import busy
from gputune.probing.busy import BusyCpus, Reading, between, busy_ticks, own_seconds

TICKS = os.sysconf("SC_CLK_TCK")


def stat(*busy_seconds, column=0):
    """A /proc/stat in which each CPU was busy so long, and idle and waiting for much longer."""
    lines = ["cpu  999999 0 0 0 0 0 0 0 0 0"]
    for cpu, seconds in enumerate(busy_seconds):
        counts = [0, 0, 0, 500000, 70000, 0, 0, 0, 0, 0]
        counts[column] = round(seconds * TICKS)
        lines.append(f"cpu{cpu} {' '.join(map(str, counts))}")
    return "\n".join([*lines, "intr 12345 6", "ctxt 1990473", "btime 1062191376"])


def reading(at=0.0, busy=0.0, own=0.0):
    return Reading(at=at, busy=busy, own=own)


@pytest.mark.parametrize("column", [0, 1, 2, 5, 6, 7])
def test_user_nice_system_interrupts_and_steal_are_busy(column):
    assert busy_ticks(stat(1.5, 2, column=column), [0, 1]) == 3.5 * TICKS


@pytest.mark.parametrize("column", [3, 4, 8, 9])
def test_idle_and_waiting_are_not_and_guests_are_counted_already(column):
    assert busy_ticks(stat(1.5, 2, column=column), [0, 1]) == 0


def test_only_our_cpus_count():
    assert busy_ticks(stat(1, 20, 3, 40), [0, 2]) == 4 * TICKS


@pytest.mark.parametrize(
    "text", ["", "cpu 1 2 3 4 5 6 7 8", stat(1), "cpu0 1 2 3\ncpu1 1 2 3", "cpu0 a b c d e f g h\ncpu1"]
)
def test_a_cpu_that_is_not_listed_is_unreadable(text):
    with pytest.raises(Unreadable):
        busy_ticks(text, [0, 1])


@pytest.mark.parametrize(
    ("busy", "own", "others"), [(20, 20, 0.0), (39, 20, 1.9), (20, 0, 2.0), (0, 0, 0.0), (20.1, 20, 0.01)]
)
def test_others_used_what_we_did_not(busy, own, others):
    assert between(reading(5, 100, 7), reading(15, 100 + busy, 7 + own)) == others


def test_a_little_less_than_our_own_is_the_kernel_s_rounding():
    assert between(reading(), reading(10, 19.5, 20)) == 0.0


@pytest.mark.parametrize(
    ("why", "after"),
    [
        ("a /proc/stat that stands still", reading(10, 0, 20)),
        ("our own time lost with a process that was killed", reading(10, 20, -3)),
        ("too short", reading(0.1, 0.1, 0.0)),
    ],
)
def test_what_contradicts_itself_is_not_told(why, after):
    assert between(reading(), after) is None, why


class TestOfAHost:
    @pytest.fixture
    def clock(self, monkeypatch):
        now = {"at": 50.0}
        monkeypatch.setattr(busy.time, "monotonic", lambda: now["at"])
        return now

    def test_since_start(self, clock):
        host, own = RecordedHost("cpu-only", files={"/proc/stat": stat(100, 200)}), {"seconds": 30.0}
        busy = BusyCpus(host, lambda: own["seconds"])
        busy.start()
        host.files["/proc/stat"], own["seconds"], clock["at"] = stat(110, 208), 43.0, 60.0
        assert busy.others() == 0.5

    def test_it_may_be_started_again(self, clock):
        host = RecordedHost("cpu-only", files={"/proc/stat": stat(100, 200)})
        busy = BusyCpus(host, lambda: 0.0)
        busy.start()
        host.files["/proc/stat"], clock["at"] = stat(110, 210), 60.0
        busy.start()
        clock["at"] = 70.0
        assert busy.others() == 0.0

    def test_without_a_start_or_a_proc_stat_nothing_is_told(self):
        assert BusyCpus(RecordedHost("cpu-only", files={"/proc/stat": stat(1, 1)}), lambda: 0.0).others() is None
        busy = BusyCpus(RecordedHost("cpu-only", files={"/proc/stat": None}), lambda: 0.0)
        busy.start()
        assert busy.others() is None


WORK = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


@pytest.mark.slow
def test_what_we_and_our_children_used_is_ours_while_they_live_and_after():
    before = own_seconds()
    script = WORK.format(seconds=0.3) + "print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert own_seconds() - before >= 0.25
        child.communicate(b"\n")
    assert 0.25 <= own_seconds() - before < 3


@pytest.mark.slow
def test_this_machine():
    """Our own work is not taken for that of others."""
    busy, anybody = BusyCpus(Host()), BusyCpus(Host(), own=lambda: 0.0)
    busy.start()
    anybody.start()
    subprocess.run([sys.executable, "-c", WORK.format(seconds=0.5)], check=True)
    others, all_used = busy.others(), anybody.others()
    if others is None or all_used is None:
        pytest.skip("/proc/stat does not count here")
    assert 0 <= others <= all_used - 0.3
