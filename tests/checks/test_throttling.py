from dataclasses import replace

import pytest
from making import row
from recorded import found

from gputune.checks import throttling


def under_load(*masks, device="cuda:0"):
    seen = row("precision", "throughput", 100.0, device)
    return [replace(seen, conditions={"throttle_reasons": float(mask)}) for mask in masks]


def finding(*masks, **overrides):
    [one] = found(throttling, measurements=under_load(*masks), **overrides)
    return one


@pytest.mark.parametrize(
    ("mask", "name", "remedy"),
    [
        (0x08, "hardware slowdown", "nvidia-smi -q -d PERFORMANCE"),
        (0x20, "software thermal slowdown", "fans"),
        (0x40, "hardware thermal slowdown", "fans"),
        (0x80, "power brake", "power supply"),
    ],
)
@pytest.mark.parametrize("beside", [0x0, 0x4])
def test_a_fault_under_load(mask, name, remedy, beside):
    one = finding(mask | beside)
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"slowed down under load by {name}"
    assert remedy in one.remedy


def test_faults_of_several_measurements_are_told_together_and_a_remedy_once():
    one = finding(0x20, 0x4, 0x40, 0x80)
    assert "software thermal slowdown, hardware thermal slowdown, power brake" in one.message
    assert one.remedy.count("fans") == 1
    assert "power supply" in one.remedy


@pytest.mark.parametrize(
    ("mask", "name"),
    [
        (0x1, "idleness"),
        (0x4, "software power cap"),
        (0x10, "sync boost"),
        (0x100, "display clocks"),
        (0x200, "board limit"),
        (0x400, "reliability voltage"),
    ],
)
def test_what_is_normal_is_no_fault(mask, name):
    one = finding(mask)
    assert (one.severity, one.message) == ("OK", f"under load limited only by {name}, which is normal")


def test_all_that_is_normal_is_named():
    assert "only by idleness, software power cap, which is normal" in finding(0x0, 0x4, 0x1).message


@pytest.mark.parametrize("masks", [[0x0], [0x0, 0x0], [0x2]])
def test_nothing_slowed_it_but_perhaps_a_setting(masks):
    one = finding(*masks)
    assert (one.severity, one.message) == ("OK", "nothing slowed it down under load")


@pytest.mark.parametrize(("mask", "told"), [(0x800, "0x800"), (0x1004, "0x1000"), (0x1802, "0x1800")])
def test_a_reason_that_is_not_known_is_unknown(mask, told):
    one = finding(mask)
    assert (one.severity, one.subject) == ("UNKNOWN", "GPU 0")
    assert f"({told})" in one.message


def test_a_fault_goes_before_a_reason_that_is_not_known():
    assert finding(0x840).severity == "WARNING"


def test_a_load_under_which_it_could_not_be_read_is_unknown():
    [one] = found(throttling, measurements=[row("precision", "throughput", 100.0)])
    assert (one.severity, one.message) == ("UNKNOWN", "the probe could not read it under load")


def test_at_rest_a_reason_says_nothing():
    one = finding(gpu={"CurrentClocksEventReasons": 0x40})
    assert one.severity == "NOT_APPLICABLE"
    assert "gputune probe" in one.message


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_load_elsewhere_says_nothing(device):
    [one] = found(throttling, measurements=under_load(0x40, device=device))
    assert one.severity == "NOT_APPLICABLE"
