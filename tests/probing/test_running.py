"""A run keeps the time of its probe, whatever its benches take."""

from types import SimpleNamespace

import pytest
from making import row
from recorded import RecordedHost, facts_of

from gputune.bench_process.messages import BenchRequest
from gputune.facts.gap import Gap
from gputune.probing import running
from gputune.probing.plan import PlannedBench
from gputune.probing.running import DeviceRun


def entry(name, seconds, **constants):
    request = BenchRequest(bench=name, seconds=seconds, budget="quick")
    return PlannedBench(SimpleNamespace(**{"__name__": name, "RANK": 9, **constants}), request, 0.6 * seconds)


class Process:
    """A bench process on a clock of its own, in which starting and each bench take so long."""

    def __init__(self, clock, starting, taking):
        self.clock, self.starting, self.taking = clock, starting, taking
        self.asked = []

    def start(self):
        self.clock[0] += self.starting
        self.starting = 0.0

    def run(self, request):
        self.asked.append((request.bench, round(request.seconds, 2)))
        self.clock[0] += self.taking.get(request.bench, request.seconds)
        yield row(request.bench, "throughput", 1.0)


@pytest.fixture
def ran(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])

    def ran(*entries, ends, starting=0.0, **taking):
        process = Process(clock, starting, taking)
        run = DeviceRun(process=process, facts=facts_of("cpu-only"), device="cuda:0", host=RecordedHost("cpu-only"))
        run.do(entries, lambda progress: None, ends=ends)
        return process.asked, run

    return ran


ALL = (entry("first", 10), entry("second", 10), entry("last", 10))


@pytest.mark.parametrize(
    ("ends", "taken", "asked"),
    [
        (30, {}, [("first", 10), ("second", 10), ("last", 10)]),
        (30, {"starting": 3}, [("first", 10), ("second", 10), ("last", 7)]),
        (30, {"first": 14}, [("first", 10), ("second", 10), ("last", 6)]),
        (27, {"first": 8, "second": 8}, [("first", 10), ("second", 10), ("last", 10)]),
        (30, {"first": 20}, [("first", 10), ("second", 10)]),
        (30, {"starting": 40}, [("first", 6)]),
    ],
    ids=[
        "in time", "a long start", "a bench that takes too long", "what one did not need is for those that follow",
        "no time for the last", "the most valuable runs all the same",
    ],
)  # fmt: skip
def test_what_is_missing_is_taken_from_the_least_valuable_or_is_a_gap(ran, ends, taken, asked):
    done, run = ran(*ALL, ends=ends, **taken)
    assert done == asked
    left_out = [one.name for one in ALL[len(asked) :]]
    assert run.gaps == [
        Gap(fact=f"bench.{name}", reason="not measured in this budget", cause="no_time") for name in left_out
    ]


def test_what_the_user_named_takes_its_time_on_top(ran):
    named = entry("named", 20, OPTION="shapes")
    assert ran(named, *ALL, ends=30)[0] == [("named", 20), ("first", 10), ("second", 10), ("last", 10)]
