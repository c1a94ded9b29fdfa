"""Slow is what stays 10 % and five scaled deviations below the node's median, twice."""

from dataclasses import replace

import pytest
from making import row
from recorded import found

from gputune.checks import slow_gpu

HEALTHY = (655, 660, 671, 662, 658, 664, 649, 667)
"""TFLOP/s of eight cards that differ by 3 %."""


def taken(rates, run=1, metric="matmul", **conditions):
    rows = [row("side_by_side", metric, rate, f"cuda:{number}", run=run) for number, rate in enumerate(rates)]
    return [replace(one, unit="GB/s" if metric == "bandwidth" else "TFLOP/s", conditions=conditions) for one in rows]


def with_one(rate, number=3):
    return (*HEALTHY[:number], rate, *HEALTHY[number + 1 :])


def findings(*rows):
    return found(slow_gpu, "nvidia-h200-x8", [row for some in rows for row in some])


def warned(*rows):
    return [one.subject for one in findings(*rows) if one.severity == "WARNING"]


def test_without_all_gpus_at_once_it_says_what_would_measure_it():
    assert {(one.severity, "--device all" in one.message) for one in findings()} == {("NOT_APPLICABLE", True)}


def test_one_gpu_has_nothing_to_be_held_against():
    [one] = found(slow_gpu)
    assert (one.severity, one.message) == (
        "NOT_APPLICABLE",
        "there are fewer than 3 GPUs of its kind to compare",
    )


def test_healthy_cards_are_told_beside_the_median():
    said = findings(taken(HEALTHY), taken([4100 + rate for rate in HEALTHY], metric="bandwidth"))
    assert {one.severity for one in said} == {"OK"}
    assert (
        said[0].message
        == "steady matmul 657.3 TFLOP/s, 99% of the median; memory bandwidth 4772 GB/s, 100% of the median"
    )


@pytest.mark.parametrize("metric", ["matmul", "bandwidth"])
def test_a_card_that_is_slow_in_two_runs_is_named(metric):
    slow = with_one(560)
    assert warned(taken(slow, 1, metric), taken(slow, 2, metric)) == ["GPU 3"]


def test_the_warning_holds_both_runs_the_clock_and_the_power():
    def conditions(number, clock, watts):
        rows = taken(with_one(560), number, sm_clock_mhz=1755.0, power_watts=698.0)
        rows[3] = replace(rows[3], conditions={"sm_clock_mhz": clock, "power_watts": watts, "gpu_processes": 2.0})
        return rows

    [one] = [one for one in findings(conditions(1, 1410.0, 500.0), conditions(2, 1405.0, 502.0)) if one.remedy]
    assert one.message == (
        "steady matmul 15% and 15% below the median of 8 GPUs (562 to 661.3 TFLOP/s; 1405 to 1755 MHz, 502 to 698 W, "
        "2 processes on it)"
    )
    assert "nvidia-smi -i 0000" in one.remedy


def test_one_run_calls_for_another_and_warns_of_nothing():
    assert slow_gpu.suspects(taken(with_one(560))) == {"cuda:3"}
    assert warned(taken(with_one(560))) == []


def test_what_a_second_run_does_not_confirm_is_said_and_no_warning():
    said = findings(taken(with_one(560), 1), taken(HEALTHY, 2))
    assert said[3].severity == "OK"
    assert said[3].message.endswith("steady matmul slow in one run and not in another")


def test_a_card_that_was_slow_and_then_gave_no_measurement_is_unknown():
    slow = with_one(560)
    second = [row for row in taken(slow, 2) if row.device != "cuda:3"]
    found_so = findings(taken(slow, 1), second)[3]
    assert found_so.severity == "UNKNOWN"
    assert found_so.message.startswith(
        "steady matmul 562 TFLOP/s, 85% of the median; slow in one run, and not measured"
    )


def test_another_card_in_the_second_run_is_no_confirmation():
    assert warned(taken(with_one(560), 1), taken(with_one(560, number=5), 2)) == []


def test_less_than_10_percent_is_what_healthy_cards_differ_by():
    assert not slow_gpu.suspects(taken([100] * 7 + [90.1]))
    assert slow_gpu.suspects(taken([100] * 7 + [89.9]))


def test_where_all_scatter_a_card_must_be_far_below_them():
    scattered = (100, 104, 96, 103, 97, 105, 95, 82)
    assert not slow_gpu.suspects(taken(scattered)), "18 % below, and the others scatter by 4 %"
    assert slow_gpu.suspects(taken((*scattered[:-1], 60))) == {"cuda:7"}


def test_a_fast_card_is_no_alarm_for_the_others():
    assert not slow_gpu.suspects(taken(with_one(800)))


def test_two_gpus_cannot_tell():
    said = findings(taken((660, 400)), taken((660, 400), 2))
    assert {one.severity for one in said} == {"NOT_APPLICABLE", "UNKNOWN"}
    assert said[0].message.endswith(": with 2 GPUs there is no telling which is slow")


def test_a_card_that_gave_no_measurement_is_unknown_and_not_healthy():
    said = findings(taken(HEALTHY[:7]))
    assert (said[7].severity, said[7].message) == ("UNKNOWN", "it was not measured together with the others")
