"""Every bench, on this machine's CPU in a second or two: rows that are whole, and decisions that can be drawn from them."""

from dataclasses import replace

import pytest

from gputune import advise, benches, facts
from gputune.benches import BUDGETS, Context
from gputune.host import Host


@pytest.fixture(scope="module")
def machine():
    return facts.read(Host())


def measured(machine, name, seconds, budget="standard"):
    context = Context(device="cpu", facts=machine, seconds=seconds, budget=budget)
    return list(benches.load(name).measure(context))


@pytest.mark.parametrize("name", benches.names())
def test_a_bench_says_what_it_costs_and_what_it_needs(name, machine):
    bench = benches.load(name)
    assert {kind: set(seconds) for kind, seconds in bench.SECONDS.items()} == {
        "cuda": set(BUDGETS),
        "cpu": set(BUDGETS),
    }
    assert bench.needs(machine, "cpu") is None
    without = replace(machine, libraries=replace(machine.libraries, torch=None))
    assert bench.needs(without, "cpu") == "torch is not installed"


def test_the_most_valuable_is_measured_first():
    ranks = [benches.load(name).RANK for name in benches.names()]
    assert ranks == sorted(set(ranks))


@pytest.mark.parametrize(("device", "most"), [("cpu", 50), ("cuda", 75)])
def test_the_standard_budget_leaves_time_for_starting_up(device, most):
    assert sum(benches.seconds(name, device, "standard") for name in benches.names()) <= most


def test_precision_measures_every_dtype_and_its_error(machine):
    rows = measured(machine, "precision", 2)
    dtypes = {row.params["dtype"] for row in rows if row.metric == "throughput"}
    assert dtypes == set(Context(device="cpu", facts=machine, seconds=1, budget="quick").dtypes)
    errors = {row.params["dtype"]: row.median for row in rows if row.metric == "relative_error"}
    assert 0 < errors["float32"] < 1e-6
    assert all(1e-3 < error < 1e-2 for dtype, error in errors.items() if dtype == "bfloat16")


def test_alignment_compares_sizes_within_one_tile_row(machine):
    rows = measured(machine, "matmul_alignment", 4, "quick")
    assert {row.params["dim"] for row in rows} == {"N", "K"}
    for dim in "NK":
        sizes = {row.params["multiple"]: row.params["size"] for row in rows if row.params["dim"] == dim}
        assert sizes == {16: 528, 1: 513, 2: 514, 4: 516, 8: 520}


def test_conv_covers_both_formats_of_every_channel_count(machine):
    rows = [row for row in measured(machine, "conv", 4) if row.metric == "throughput"]
    counts = {}
    for row in rows:
        counts.setdefault((row.params["dtype"], row.params["channels"]), set()).add(row.params["channels_last"])
    assert all(formats == {False, True} for formats in counts.values())
    assert {row.params["aligned"] for row in rows} == {False, True}


def test_threads_are_put_back(machine):
    import torch

    before = torch.get_num_threads()
    rows = measured(machine, "cpu_threads", 1)
    assert torch.get_num_threads() == before
    assert [row.params["default"] for row in rows].count(True) == 1
    assert rows[0].params["threads"] == before


def test_the_dataloader_curve_starts_without_workers_and_leaves_none_behind(machine):
    import psutil

    before = psutil.Process().children(recursive=True)
    rows = measured(machine, "dataloader", 8)
    counts = [row.params["workers"] for row in rows if row.params["kind"] == "decode"]
    assert counts[:2] == [0, 1]
    started = [child for child in psutil.Process().children(recursive=True) if child not in before]
    _, alive = psutil.wait_procs(started, timeout=5)
    assert not alive
    choice = advise.choices(machine, rows)["dataloader_workers"]
    assert choice.value in counts


def test_a_small_shared_memory_is_a_reason_not_to_run(machine):
    small = replace(machine, memory=replace(machine.memory, shm_free_bytes=1 << 20))
    assert "--shm-size" in benches.load("dataloader").needs(small, "cpu")
