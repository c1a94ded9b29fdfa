"""A plan keeps the promise of its budget: it makes room for a new bench, and says what it left out."""

import math
from types import SimpleNamespace

import pytest

from gputune import benches
from gputune.bench_process import BUDGETS, MatmulShape
from gputune.bench_process.messages import BenchRequest
from gputune.probing import ProbeRequest
from gputune.probing.plan import LEAST_SHARE, PlannedBench, fit, fitting, imports, plan, seconds_for

SHAPES = (MatmulShape(m=8, n=8, k=8, dtype="tf32"),) * 3


def entry(name, seconds):
    request = BenchRequest(bench=name, seconds=seconds, budget="standard")
    return PlannedBench(SimpleNamespace(__name__=name), request, LEAST_SHARE * seconds)


@pytest.mark.parametrize(
    ("wanted", "total", "fitted"),
    [
        ([10, 20, 10], 40, [10, 20, 10]),
        ([10, 20, 10], 36, [10, 20, 6]),
        ([10, 20, 10], 33, [10, 17, 6]),
        ([10, 20, 10], 24, [6, 12, 6]),
        ([10, 20, 10], 23, [10, 13]),
        ([10, 20, 10], 7, [7]),
        ([10, 20, 10], 5, []),
        ([], 5, []),
    ],
)
def test_the_least_valuable_are_shortened_first_and_below_the_least_share_left_out(wanted, total, fitted):
    assert LEAST_SHARE == 0.6
    entries = [entry(f"bench{number}", seconds) for number, seconds in enumerate(wanted)]
    left = fit(entries, total)
    assert [one.seconds for one in left] == fitted
    assert [one.name for one in left] == [one.name for one in entries[: len(fitted)]]


def test_a_short_one_fits_where_a_more_valuable_one_does_not():
    assert [(one.name, one.seconds) for one in fit([entry("long", 20), entry("short", 10)], 8)] == [("short", 8)]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_no_plan_takes_longer_than_its_budget_and_a_start_of_two_seconds_leaves_none_out(device, budget):
    request = ProbeRequest(budget=budget, shapes=SHAPES)
    entries, seconds = plan(device, request), seconds_for(device, request) - 2
    fitted = fitting(entries, seconds)
    assert [entry.name for entry in fitted] == [entry.name for entry in entries]
    assert 0 < sum(entry.seconds for entry in fitted if entry.shares_the_budget) <= seconds + 1e-9
    assert [entry.seconds for entry in fitted if not entry.shares_the_budget] == [
        entry.seconds for entry in entries if not entry.shares_the_budget
    ]


@pytest.fixture
def made_up(monkeypatch):
    def replace(*given, **constants):
        modules = {
            name: SimpleNamespace(
                __name__=f"gputune.benches.{name}",
                RANK=rank,
                SECONDS={"cpu": {"quick": 0, "standard": seconds, "thorough": 90}},
                **constants.get(name, {}),
            )
            for name, rank, seconds in given
        }
        monkeypatch.setattr("gputune.plugins.names", lambda package: tuple(sorted(modules)))
        monkeypatch.setattr(benches, "load", modules.__getitem__)

    return replace


def planned(**wanted):
    return [(entry.name, entry.seconds) for entry in plan("cpu", ProbeRequest(**wanted))]


def test_the_start_and_the_end_of_the_command_are_part_of_its_promise():
    assert seconds_for("cuda:0", ProbeRequest()) == pytest.approx(57.7)
    assert seconds_for("cuda:0", ProbeRequest(budget="quick")) == pytest.approx(8.7)
    assert seconds_for("cuda:0", ProbeRequest(only=["precision"])) == math.inf


def test_a_new_bench_in_a_full_budget_costs_the_least_valuable(made_up):
    made_up(("last", 3, 20), ("first", 1, 30), ("added", 2, 3))
    fitted = fitting(plan("cpu", ProbeRequest()), 50)
    assert [(entry.name, entry.seconds) for entry in fitted] == [("first", 30), ("added", 3), ("last", 17)]


def test_essential_benches_keep_their_time_and_the_others_share_what_these_leave(made_up):
    made_up(("first", 1, 20), ("essential", 4, 10), ("other", 5, 5), ("last", 6, 5))
    entries = plan("cpu", ProbeRequest())
    names = ("first", "essential", "other", "last")
    for total, seconds in ((38, [20, 10, 5, 3]), (34, [20, 10, 4]), (20, [14, 6])):
        found = [(entry.name, entry.seconds) for entry in fitting(entries, total)]
        assert found == list(zip(names, seconds, strict=False))


def test_equal_ranks_are_in_the_order_of_names(made_up):
    made_up(("b", 1, 1), ("c", 0.5, 1), ("a", 1, 1))
    assert [name for name, _ in planned()] == ["c", "a", "b"]


def test_a_bench_that_is_named_gets_time_where_the_budget_has_none_for_it(made_up):
    made_up(("small", 1, 5), ("large", 2, 80))
    assert planned(budget="quick") == []
    assert planned(budget="quick", only=["large"]) == [("large", 80)]


def test_a_bench_of_what_the_user_names_runs_only_then_and_has_its_seconds_for_each(made_up):
    made_up(("shaped", 1, 5), ("always", 2, 50), shaped={"OPTION": "shapes"})
    assert planned() == [("always", 50)]
    assert planned(only=["shaped"]) == []
    assert planned(shapes=SHAPES) == [("shaped", 15), ("always", 50)]


@pytest.mark.parametrize(("device", "names"), [("auto", ["own"]), ("all", ["comparing", "own"])])
def test_a_comparison_of_gpus_runs_only_where_all_are_measured(made_up, device, names):
    made_up(("comparing", 1, 60), ("own", 2, 5), comparing={"SIDE_BY_SIDE": True})
    assert [name for name, _ in planned(device=device)] == names


def test_what_takes_its_time_however_little_it_is_given_is_not_shortened(made_up):
    made_up(("first", 1, 20), ("fixed", 2, 10), fixed={"LEAST_SECONDS": {"cpu": 10.0}})
    entries = plan("cpu", ProbeRequest())
    assert [entry.seconds for entry in fitting(entries, 25)] == [15, 10]
    assert [entry.name for entry in fitting(entries, 21)] == ["first"]


def test_the_modules_that_benches_import_are_known_before_the_device(made_up):
    made_up(("first", 1, 20), ("second", 2, 10), first={"IMPORTS": ("json", "csv")}, second={"IMPORTS": ("csv",)})
    assert imports(ProbeRequest()) == ["json", "csv"]
    assert imports(ProbeRequest(only=["second"])) == ["csv"]
