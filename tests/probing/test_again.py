"""What was disturbed runs again once the machine is calm."""

from dataclasses import replace

import pytest
from making import row
from recorded import RecordedHost, facts_of

from gputune.facts import busy
from gputune.facts.gap import Gap
from gputune.probing import ProbeRequest, running
from gputune.probing.plan import plan, seconds_for
from gputune.probing.running import DeviceRun, run_again, seconds_to_run_again

TWO = facts_of("cpu-only", affinity=range(2))


def threads(one: float, others: float = 0.0):
    default, single = (
        row("cpu_threads", "throughput", rate, device="cpu", threads=count, default=count == 2)
        for count, rate in ((2, 1.0), (1, one))
    )
    return [replace(default, conditions={"other_cpus": others}), single]


class Process:
    def __init__(self, *runs):
        self.runs = list(runs)
        self.asked = []

    def start(self):
        """It always is ready."""

    def run(self, request):
        self.asked.append(round(request.seconds, 1))
        yield from self.runs.pop(0)


@pytest.fixture
def probed(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])

    def probed(*runs, later=0.0, seconds=20.0):
        def watched(host, looked):
            clock[0] += looked
            return later

        monkeypatch.setattr(busy, "watched", watched)
        monkeypatch.setattr(busy, "conditions", lambda before, after: {})
        process = Process(*runs)
        run = DeviceRun(process=process, facts=TWO, device="cpu", host=RecordedHost("cpu-only"))
        entries = plan("cpu", ProbeRequest(only=["cpu_threads"]))
        run.do(entries, lambda progress: None)
        run_again(run, entries, seconds, lambda progress: None)
        return run, process, clock[0]

    return probed


def samples(rows):
    return [row.median for row in rows if row.params["threads"] == 1]


def test_what_was_disturbed_is_replaced_once_the_machine_is_calm(probed):
    run, process, _ = probed(threads(1.44, others=1.0), threads(0.64))
    assert samples(run.measurements) == [pytest.approx(0.64, rel=0.01)]
    assert process.asked == [3.0, 3.0]


def test_where_it_stays_busy_the_time_is_waited_for_and_the_rows_stay(probed):
    run, process, waited = probed(threads(1.44, others=1.0), later=1.0)
    assert samples(run.measurements) == [pytest.approx(1.44, rel=0.01)]
    assert process.asked == [3.0]
    assert 10 < waited <= 20


@pytest.mark.parametrize(("others", "seconds"), [(0.0, 20.0), (1.0, 2.0)], ids=["nothing is disturbed", "no time"])
def test_nothing_runs_again_without_need_or_without_its_time(probed, others, seconds):
    assert probed(threads(1.44, others), seconds=seconds)[1].asked == [3.0]


def test_a_second_run_that_gave_less_leaves_the_first(probed):
    cut = Gap(fact="bench.cpu_threads", reason="the process was killed")
    for second, said in (([], []), ([*threads(0.64), cut], [replace(cut, reason="run again: the process was killed")])):
        run, *_ = probed(threads(1.44, others=1.0), second)
        assert samples(run.measurements) == [pytest.approx(1.44, rel=0.01)]
        assert run.gaps == said


def test_also_where_a_gap_of_the_same_fact_was_there_before(probed):
    before, now = (Gap(fact="bench.cpu_threads", reason=why) for why in ("one count failed", "the budget ran out"))
    run, *_ = probed([*threads(1.44, others=1.0), before], [*threads(0.64), now])
    assert samples(run.measurements) == [pytest.approx(1.44, rel=0.01)]
    assert run.gaps == [before, replace(now, reason="run again: the budget ran out")]


def test_two_cpus_that_others_leave_are_calm_enough_for_a_gpu():
    run = DeviceRun(process=Process(), facts=facts_of(), device="cuda:0", host=RecordedHost("cpu-only"))
    steps, loading = plan("cuda:0", ProbeRequest(only=["training_step", "dataloader"]))
    others = run.facts.cpu.affinity_count / 2
    assert not running.is_disturbed(run, steps, others)
    assert running.is_disturbed(run, loading, others)


def test_what_was_said_of_the_first_run_goes_with_its_rows(probed):
    said, other = (Gap(fact=f"bench.{name}", reason="too slow") for name in ("cpu_threads.x", "conv"))
    run, *_ = probed([*threads(1.44, others=1.0), said, other], threads(0.64))
    assert run.gaps == [other]


def test_a_probe_of_all_gives_it_a_share_of_its_time_and_benches_asked_for_by_name_get_enough():
    def seconds(request):
        return seconds_to_run_again(plan("cpu", request), seconds_for("cpu", request))

    assert seconds(ProbeRequest()) == 0.25 * seconds_for("cpu", ProbeRequest())
    asked = ProbeRequest(only=["cpu_threads", "dataloader"])
    looks = 2 * running.LOOK_SECONDS
    assert seconds(asked) >= sum(entry.seconds for entry in plan("cpu", asked)) + looks
