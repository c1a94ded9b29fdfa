"""What a probe tells of the time left, held against recorded probes on a clock of their own."""

import time
from itertools import pairwise

import pytest
from making import row
from recorded import RecordedHost, facts_of

from gputune import benches
from gputune.bench_process.messages import Activity
from gputune.facts import busy
from gputune.probing import Request, again, before
from gputune.probing.again import run_again, seconds_expected, seconds_to_run_again
from gputune.probing.plan import plan, promised, seconds_for
from gputune.probing.running import Lane

TWO_CPUS = {"precision": 4.41, "matmul_alignment": 6.94, "training_step": 11.75, "dataloader": 11.03,
            "cpu_threads": 2.03, "conv": 4.30, "matmul_peak": 3.92}  # fmt: skip
"""How long the benches of a standard probe of two CPUs took; the start of the bench process took 3 s."""
ITS_START = 3.0


class Process:
    """A bench process on a clock of its own, of which each bench says once what it does."""

    def __init__(self, clock, taking, rows):
        self.clock, self.taking, self.rows = clock, taking, rows
        self.starting = ITS_START

    def start(self):
        self.clock[0] += self.starting
        self.starting = 0.0

    def run(self, request):
        name = request.bench.rpartition(".")[2]
        for _ in range(2):
            self.clock[0] += self.taking.get(name, request.seconds) / 2
            yield Activity(text="half of it")
        yield from self.rows(name)


def threads(others):
    """Rows of the bench of threads, with which two runs are to agree that one thread is faster."""
    rows = [
        row("cpu_threads", "throughput", rate, device="cpu", threads=count, default=count == 2)
        for count, rate in ((2, 1.0), (1, 1.44))
    ]
    return lambda name: rows if name == "cpu_threads" else [row(name, "told", 1.0)]


@pytest.fixture
def probed(monkeypatch):
    """A function that probes while others use so many CPUs, and later so many: each time how many seconds were told,
    and how many it then took; the first with all of it.
    """

    def probed(device="cpu", budget="standard", others=0.0, later=0.0, machine="cpu-only", **taking):
        clock, seen = [0.0], []
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(again.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
        monkeypatch.setattr(benches, "missing", lambda bench, facts, device: None)
        monkeypatch.setattr(busy, "conditions", lambda before, after: {"other_cpus": others})
        monkeypatch.setattr(busy, "used_by_others", lambda before, after: later)
        facts = facts_of(machine, affinity=range(2)) if machine == "cpu-only" else facts_of(machine)
        process = Process(clock, taking, threads(others))
        lane = Lane(process=process, facts=facts, device=device, host=RecordedHost(machine))
        request = Request(device=device, budget=budget)
        jobs, seconds = plan(device, request), seconds_for(device, request)
        reserve = seconds_to_run_again(jobs, seconds)

        def tell(progress):
            seen.append((clock[0], progress.left_seconds))

        lane.do(jobs, before(tell, lambda: seconds_expected(lane, jobs, reserve)), ends=seconds)
        run_again(lane, jobs, reserve, tell)
        return [(clock[0] - ITS_START, None), *((left, clock[0] - then) for then, left in seen)]

    return probed


PROBES = {
    "two CPUs, calm": {**TWO_CPUS},
    "two CPUs, busy all the time": {**TWO_CPUS, "others": 1.0, "later": 1.0},
    "two CPUs, quick": {"budget": "quick", "precision": 2.1},
    "a GPU, as planned": {"device": "cuda:0", "machine": "nvidia-h200-x8"},
    "a GPU, thorough": {"device": "cuda:0", "machine": "nvidia-h200-x8", "budget": "thorough"},
}


@pytest.mark.parametrize("told", PROBES.values(), ids=PROBES)
class TestEstimate:
    def test_after_a_fifth_it_is_right_within_a_factor_of_two(self, probed, told):
        (whole, _), *told = probed(**told)
        late = [(left, took) for left, took in told if took < 0.8 * whole]
        assert late
        for left, took in late:
            assert took / 2 - 1 <= left <= 2 * took + 1

    def test_it_rises_only_where_something_is_to_run_again(self, probed, told):
        _, *rest = probed(**told)
        rises = [after - earlier for (earlier, _), (after, _) in pairwise(rest) if after > earlier + 1]
        assert len(rises) <= 1
        assert sum(rises) <= 15


def test_a_machine_that_is_calm_sooner_than_expected_takes_less(probed):
    _, *told = probed(**TWO_CPUS, others=1.0)
    assert all(took / 2 - 1 <= left <= took + 15 for left, took in told)


def test_before_anything_is_known_it_is_what_the_budget_promises():
    assert promised(Request()) == 60
    assert promised(Request(device="cuda:1", budget="thorough")) == 600
    assert promised(Request(device="cpu", budget="thorough")) == 300
    assert promised(Request(budget="thorough")) is None, "a GPU takes longer"
    assert promised(Request(only=["conv"])) is None


def test_what_runs_again_is_told_before_it_does(probed):
    """The bench of threads asks for a second run, and the time for it is told from its end on."""
    _, *told = probed(**TWO_CPUS)
    assert any(left == pytest.approx(took, abs=2.5) for left, took in told if 5 < took < 12)
