"""What the measurements must be worth, on a real GPU; `python tests/gpu/figures.py` prints the same figures."""

import os

import five_probes
import pytest
from gpu import figures

pytestmark = pytest.mark.gpu

H200 = "NVIDIA H200"


@pytest.fixture(scope="module")
def gpu():
    import torch

    return torch.cuda.get_device_name(0)


def test_the_peak_search_finds_what_a_grid_of_3375_shapes_finds(gpu):
    found = figures.peak()
    print(found)
    assert found["search seconds"] <= 10
    assert found["share of the grid's best"] >= 0.99
    if gpu == H200:
        assert found["burst TFLOP/s"] >= 790


@pytest.mark.parametrize(("busy", "seconds"), [(False, 60), (True, 75)])
def test_five_probes_in_a_row_recommend_the_same(busy, seconds):
    found = five_probes.in_a_row(len(os.sched_getaffinity(0)) // 2 if busy else 0)
    print(found)
    assert found["differing"] == {}
    assert found["differing alone"] == {}
    assert not any(None in each for each in found["workers"].values())
    assert max(found["seconds"]) <= seconds


def test_the_recommended_combinations_are_within_3_percent_of_the_best_of_all():
    found = figures.families()
    print(found)
    assert set(found) == {"mlp", "convnet", "transformer", "recurrent"}
    for name, one in found.items():
        assert one["share of the best"] >= 0.97, name
        assert one["times the defaults"] >= 1, name


def test_a_second_process_that_loads_the_gpu_is_reported():
    found = figures.beside_another()
    print(found)
    assert "other process" in found["WARNING"]


def test_a_card_of_8_gib_is_measured_with_smaller_shapes_or_says_why_not():
    found = figures.small_card()
    print(found)
    assert all(one["rows"] for one in found.values())
    assert all("memory" in reason for one in found.values() for reason in one["gaps"])


def test_a_card_without_bfloat16_is_measured_without_it():
    found = figures.old_card()
    print(found)
    assert found["precision"] == found["training_step"] == ["float16", "float32"]
    assert found["amp_dtype"] == "float16"


def test_the_quick_budget_takes_15_seconds():
    assert figures.budgets()["quick"] <= 15


def test_a_bench_that_runs_out_of_memory_is_killed_or_hangs_is_a_gap_and_the_rest_is_written():
    found = figures.failing()
    print(found)
    assert "out of memory" in found["bench.attention"]
    assert "killed by SIGKILL" in found["bench.conv"]
    assert "no end after" in found["bench.cpu_threads"]
    assert found["measured"] == "precision, transfer"
