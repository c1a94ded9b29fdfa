"""A lane keeps the time of its probe, whatever its benches take."""

from types import SimpleNamespace

import pytest
from making import row
from recorded import RecordedHost, facts_of

from gputune.bench_process.messages import BenchRequest
from gputune.facts.gap import Gap
from gputune.probing import running
from gputune.probing.plan import Job
from gputune.probing.running import Lane


def job(name, seconds, **constants):
    request = BenchRequest(bench=name, seconds=seconds, budget="quick")
    return Job(SimpleNamespace(**{"__name__": name, "RANK": 9, **constants}), request, 0.6 * seconds)


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
    """A function that runs jobs until the clock is at `ends`: what was asked of the process, and the lane."""
    clock = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])

    def ran(*jobs, ends, starting=0.0, **taking):
        process = Process(clock, starting, taking)
        lane = Lane(process=process, facts=facts_of("cpu-only"), device="cuda:0", host=RecordedHost("cpu-only"))
        lane.do(jobs, lambda progress: None, ends=ends)
        return process.asked, lane

    return ran


ALL = (job("first", 10), job("second", 10), job("last", 10))


def test_in_time_each_bench_has_its_own(ran):
    assert ran(*ALL, ends=30)[0] == [("first", 10), ("second", 10), ("last", 10)]


def test_a_long_start_is_taken_from_the_least_valuable(ran):
    assert ran(*ALL, ends=30, starting=3)[0] == [("first", 10), ("second", 10), ("last", 7)]


def test_so_is_what_a_bench_took_too_long(ran):
    asked, lane = ran(*ALL, ends=30, first=14)
    assert asked == [("first", 10), ("second", 10), ("last", 6)]
    assert lane.gaps == []


def test_what_a_bench_did_not_need_is_for_those_that_would_be_short(ran):
    assert ran(*ALL, ends=27, first=8, second=8)[0] == [("first", 10), ("second", 10), ("last", 10)]


def test_what_there_is_no_time_for_is_a_gap(ran):
    asked, lane = ran(*ALL, ends=30, first=20)
    assert asked == [("first", 10), ("second", 10)]
    assert lane.gaps == [Gap(fact="bench.last", reason="not measured in this budget", cause="no_time")]


def test_after_a_start_that_used_up_all_of_it_the_most_valuable_bench_runs_with_its_least_time(ran):
    asked, lane = ran(*ALL, ends=30, starting=40)
    assert asked == [("first", 6)]
    assert [gap.fact for gap in lane.gaps] == ["bench.second", "bench.last"]


def test_what_the_user_named_takes_its_time_on_top(ran):
    named = job("named", 20, OPTION="shapes")
    assert ran(named, *ALL, ends=30)[0] == [("named", 20), ("first", 10), ("second", 10), ("last", 10)]
