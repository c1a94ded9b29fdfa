"""What the file of every bench holds, and the smallest bench on this machine's CPU."""

from dataclasses import replace

import pytest
from loaded import on_cpu
from recorded import facts_of

from gputune import benches
from gputune.bench_process import BUDGETS


@pytest.mark.parametrize("name", benches.names())
def test_a_bench_says_what_it_costs_and_what_it_needs(name):
    bench = benches.load(name)
    assert "cuda" in bench.SECONDS
    assert bench.SECONDS.keys() <= {"cuda", "cpu"}
    assert all(seconds.keys() <= set(BUDGETS) and all(seconds.values()) for seconds in bench.SECONDS.values())
    assert bool(benches.missing(bench, facts_of("cpu-only"), "cpu")) == ("cpu" not in bench.SECONDS), "only a GPU's"
    assert benches.missing(bench, facts_of(), "cuda:0") is None
    without = replace(facts_of(), libraries=replace(facts_of().libraries, torch=None))
    assert benches.missing(bench, without, "cuda:0") == "torch is not installed"


@pytest.mark.slow
def test_threads_are_put_back(this_machine, twelve_rounds):
    import torch

    before, bench = torch.get_num_threads(), benches.load("cpu_threads")
    rows = list(bench.measure(on_cpu(facts=this_machine)))
    assert torch.get_num_threads() == before
    assert [row.params["default"] for row in rows].count(True) == 1
    assert rows[0].params["threads"] == before
