"""What the file of every bench holds, and the smallest bench on this machine's CPU."""

from dataclasses import replace

import pytest
from recorded import facts_of

from gputune import benches
from gputune.bench_process import BUDGETS, Context


def measured(this_machine, name, seconds, budget="standard"):
    context = Context(device="cpu", facts=this_machine, seconds=seconds, budget=budget)
    return list(benches.load(name).measure(context))


@pytest.mark.parametrize("name", benches.names())
def test_a_bench_says_what_it_costs_and_what_it_needs(name, this_machine):
    """Without torch none runs; a GPU's bench says so on a CPU."""
    bench = benches.load(name)
    assert {kind: set(seconds) for kind, seconds in bench.SECONDS.items()} == {
        "cuda": set(BUDGETS),
        "cpu": set(BUDGETS),
    }
    only_a_gpus = not any(bench.SECONDS["cpu"].values())
    assert bool(benches.missing(bench, this_machine, "cpu")) == only_a_gpus
    assert benches.missing(bench, facts_of(), "cuda:0") is None
    without = replace(facts_of(), libraries=replace(facts_of().libraries, torch=None))
    assert benches.missing(bench, without, "cuda:0") == "torch is not installed"


@pytest.mark.slow
def test_threads_are_put_back(this_machine):
    import torch

    before = torch.get_num_threads()
    rows = measured(this_machine, "cpu_threads", 1)
    assert torch.get_num_threads() == before
    assert [row.params["default"] for row in rows].count(True) == 1
    assert rows[0].params["threads"] == before
