"""Alignment: which sizes are compared, in which products of a linear layer, and what counts as work."""

from itertools import groupby
from typing import Any

import pytest
from recorded import facts_of

from gputune.bench_process import Context
from gputune.benches import matmul_alignment
from gputune.benches.matmul_alignment import BASE, MULTIPLES, PRODUCTS, Group, _arm, plan

TILE = 128


def context(budget: Any, device: str = "cuda:0") -> Context:
    machine = facts_of("cpu-only" if device == "cpu" else "nvidia-h200-x1")
    return Context(device=device, facts=machine, seconds=1, budget=budget)


def looked_at(groups: list[Group]) -> dict[tuple[str, str], dict[str, int]]:
    return {
        key: {group.dim: len(group.added) for group in same}
        for key, same in groupby(groups, key=lambda group: (group.dtype, group.product))
    }


def test_the_budgets_ask_for_n_and_k_in_the_dtype_of_training_then_tf32_then_everything() -> None:
    assert looked_at(plan(context("quick"))) == {("bfloat16", "forward"): {"N": 4, "K": 4}}
    both = {("bfloat16", "forward"): {"N": 4, "K": 4}, ("tf32", "forward"): {"N": 4, "K": 4}}
    assert looked_at(plan(context("standard"))) == both
    whole = {"N": 8, "K": 8, "M": 3}
    assert looked_at(plan(context("thorough"))) == {
        **{(dtype, product): whole for dtype in ("bfloat16", "float16", "tf32") for product in PRODUCTS},
        **{("float32", product): {"N": 2, "K": 2, "M": 2} for product in PRODUCTS},
    }


@pytest.mark.parametrize("budget", ["quick", "standard", "thorough"])
@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_every_group_has_a_best_aligned_baseline_and_an_odd_size(budget: str, device: str) -> None:
    for group in plan(context(budget, device)):
        assert group.added[0] == max(group.added)
        assert 1 in group.added
        assert set(group.added) <= set(MULTIPLES)


def test_on_a_gpu_all_sizes_need_as_many_tiles() -> None:
    base = BASE["cuda"]
    for group in plan(context("thorough")):
        tiles = {-(-(base + added) // TILE) for added in group.added}
        assert tiles == {base // TILE + 1}


def test_a_size_divides_by_its_multiple_and_by_no_larger_power_of_two() -> None:
    for base in BASE.values():
        assert all((base + added) & -(base + added) == added for added in MULTIPLES)


@pytest.mark.parametrize("added", [1, 8])
def test_params_say_what_a_size_is(added: int) -> None:
    arm = _arm(context("quick", "cpu"), Group(dtype="float32", product="forward", dim="N", added=(8, 1)), added)
    assert arm.params == {
        "dtype": "float32", "product": "forward", "dim": "N", "size": 512 + added, "multiple": added,
    }  # fmt: skip
    assert arm.work == 2 * 512 * 512 * (512 + added) / 1e12


@pytest.mark.parametrize("dim", "MNK")
@pytest.mark.parametrize(("product", "shape"), [("forward", "MN"), ("grad_input", "MK"), ("grad_weight", "NK")])
def test_a_product_has_the_shape_of_what_it_is(product: str, shape: str, dim: str) -> None:
    arm = _arm(context("quick", "cpu"), Group(dtype="float32", product=product, dim=dim, added=(1,)), 1)
    assert tuple(arm.run().shape) == tuple(513 if one == dim else 512 for one in shape)


@pytest.mark.slow
def test_on_this_cpu_every_size_of_the_plan_is_measured(twelve_rounds: Any) -> None:
    here = context("quick", "cpu")
    rows: list[Any] = list(matmul_alignment.measure(here))
    assert {row.params["dtype"] for row in rows} == {plan(here)[0].dtype}
    for dim in "NK":
        sizes = {row.params["multiple"]: row.params["size"] for row in rows if row.params["dim"] == dim}
        assert sizes == {8: 520, 1: 513, 2: 514, 4: 516}
