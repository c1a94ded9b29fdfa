"""The rule for slow GPUs over runs of four H200: 20 healthy ones, and one with each GPU loaded by another process.

`python tests/gpu/side_by_side.py FOLDER` records it.
"""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from recorded import facts_of

from gputune.checks import slow_gpu
from gputune.measurement import Measurement

SETS = json.loads((Path(__file__).parents[1] / "machines" / "nvidia-h200-x4" / "side_by_side.json").read_text())
HEALTHY = [one["rows"] for one in SETS if one["loaded"] is None]
LOADED = {one["loaded"]: one["rows"] for one in SETS if one["loaded"]}


def run(rows, number=1, beside=()):
    """The rows of one run; those of a run `beside` it stand for GPUs 4 to 7 of a node of eight."""
    found = [measurement(row) for row in rows]
    found += [replace(row, device=f"cuda:{int(row.device[5:]) + 4}") for row in map(measurement, beside)]
    return [replace(row, params={**row.params, "run": number}) for row in found]


def measurement(row):
    return Measurement(**{**row, "samples": tuple(row["samples"])})


def warned(*runs):
    facts = facts_of("nvidia-h200-x8")
    return {
        one.subject
        for one in slow_gpu.check(facts, [row for rows in runs for row in rows])
        if one.severity == "WARNING"
    }


def test_there_are_20_healthy_sets_and_a_loaded_one_of_each_gpu():
    assert len(HEALTHY) == 20
    assert sorted(LOADED) == [f"cuda:{number}" for number in range(4)]


@pytest.mark.parametrize("number", range(20))
def test_four_or_eight_healthy_gpus_raise_no_alarm_and_ask_for_no_second_run(number):
    assert not slow_gpu.suspects(run(HEALTHY[number]))
    assert not slow_gpu.suspects(run(HEALTHY[number], beside=HEALTHY[(number + 7) % 20]))


def test_healthy_gpus_raise_none_in_two_runs_either():
    assert not any(warned(run(first), run(second, 2)) for first, second in pairwise(HEALTHY))


@pytest.mark.parametrize("device", LOADED)
@pytest.mark.parametrize("beside", range(0, 20, 5))
def test_a_gpu_that_another_process_loads_is_named_among_four_and_among_eight(device, beside):
    name = device.replace("cuda:", "GPU ")
    assert slow_gpu.suspects(run(LOADED[device])) == {device}
    assert warned(run(LOADED[device]), run(LOADED[device], 2)) == {name}
    eight = [run(LOADED[device], number, beside=HEALTHY[beside]) for number in (1, 2)]
    assert warned(*eight) == {name}


@pytest.mark.parametrize("device", LOADED)
def test_a_load_that_has_gone_by_the_second_run_is_no_alarm(device):
    assert not warned(run(LOADED[device]), run(HEALTHY[0], 2))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.93, 0.91, 0.89, 0.85])
def test_a_gpu_that_is_slower_by_more_than_healthy_ones_differ_is_named_in_every_set(share):
    found = [warned(*(slowed(rows, share, number) for number in (1, 2))) for rows in HEALTHY]
    assert found == [{"GPU 1"} if share < 0.9 else set()] * 20


def slowed(rows, share, number):
    return [
        replace(row, samples=tuple(sample * share for sample in row.samples)) if row.device == "cuda:1" else row
        for row in run(rows, number)
    ]
