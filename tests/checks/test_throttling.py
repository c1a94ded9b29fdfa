from dataclasses import replace

import pytest
from making import row
from recorded import found

from gputune.checks import throttling


def under_load(*masks, device="cuda:0"):
    seen = row("precision", "throughput", 100.0, device)
    return [replace(seen, conditions={"throttle_reasons": float(mask)}) for mask in masks]


def now(answer):
    """NVML's answer at rest, by its present name and by its older one."""
    return dict.fromkeys(("CurrentClocksEventReasons", "CurrentClocksThrottleReasons"), answer)


def finding(*masks, **overrides):
    [one] = found(throttling, measurements=under_load(*masks), **overrides)
    return one


@pytest.mark.parametrize(
    ("mask", "name", "remedy"),
    [
        (0x08, "hardware slowdown", "too little power"),
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
    assert one.remedy.startswith("nvidia-smi -i 00000000:00:06.0 -q -d PERFORMANCE,TEMPERATURE,POWER  # ")
    assert remedy in one.remedy


@pytest.mark.parametrize(
    ("mask", "name"),
    [
        (0x08, "hardware slowdown"),
        (0x21, "software thermal slowdown"),
        (0x41, "hardware thermal slowdown"),
        (0x80, "power brake"),
        (0x88, "hardware slowdown, power brake"),
    ],
)
def test_a_fault_at_rest_needs_no_load_to_show(mask, name):
    one = found(throttling, gpu=now(mask))[0]
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"slowed down at this moment by {name}"
    assert "nvidia-smi -i 00000000:00:06.0 -q" in one.remedy


def test_a_fault_at_rest_is_told_beside_a_load_without_one():
    assert finding(0x4, gpu=now(0x80)).message == "slowed down at this moment by power brake"


@pytest.mark.parametrize("mask", [0x0, 0x1, 0x2, 0x4, 0x100, 0x800])
def test_what_is_normal_at_rest_says_nothing_of_a_load(mask):
    [one] = found(throttling, gpu=now(mask))
    assert (one.severity, "gputune probe" in one.message) == ("NOT_APPLICABLE", True)


@pytest.mark.parametrize(
    ("answer", "severity"), [("NVML: Unknown Error", "UNKNOWN"), ("NVML: Not Supported", "NOT_APPLICABLE")]
)
def test_without_a_load_and_without_the_bits_nothing_is_known(answer, severity):
    """A consumer GPU may lack them."""
    [one] = found(throttling, gpu={"Brand": 5, **now({"unreadable": answer})})
    assert one.severity == severity
    assert finding(0x0, gpu=now({"unreadable": answer})).severity == "OK"


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


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_load_elsewhere_says_nothing(device):
    [one] = found(throttling, measurements=under_load(0x40, device=device))
    assert one.severity == "NOT_APPLICABLE"
