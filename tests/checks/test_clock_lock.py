from dataclasses import replace

import pytest
from making import row
from recorded import NOT_SUPPORTED, found

from gputune.checks import clock_lock

SET, DEFAULT, MOST, NOW = (
    "ApplicationsClock:1", "DefaultApplicationsClock:1", "MaxClockInfo:1", "CurrentClocksEventReasons",
)  # fmt: skip
AT = "sudo nvidia-smi -i 00000000:00:06.0 "
ASK = "  # on the host, as root; changes the node; a lock may be deliberate: ask whoever runs the machine first"


def under_load(mask, device="cuda:0"):
    return [replace(row("precision", "throughput", 100.0, device), conditions={"throttle_reasons": float(mask)})]


def finding(gpu, measurements=()):
    [one] = found(clock_lock, measurements=measurements, gpu=gpu)
    return one


@pytest.mark.parametrize("clock", [345, 1979])
def test_an_application_clock_below_its_default(clock):
    one = finding({SET: clock})
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"its application clock is set to {clock} MHz; the default is 1980 MHz"
    assert one.remedy == f"{AT}-rac{ASK}"


@pytest.mark.parametrize(("clock", "default"), [(1980, 1980), (1095, 1095), (1410, 1095)])
def test_an_application_clock_at_its_default_or_above(clock, default):
    gpu = {SET: clock, DEFAULT: default}
    assert (finding(gpu).severity, "at rest" in finding(gpu).message) == ("OK", True)
    one = finding(gpu, under_load(0x4))
    assert (one.severity, one.message) == ("OK", "no setting holds its clock below 1980 MHz")


@pytest.mark.parametrize("mask", [0x2, 0x6])
def test_a_setting_that_holds_it_now_or_under_load(mask):
    for one in (finding({NOW: mask}), finding({}, under_load(mask))):
        assert (one.severity, one.subject) == ("WARNING", "GPU 0")
        assert one.message == "a setting holds its clock below its maximum"
        assert one.remedy == f"{AT}-rgc; {AT}-rac{ASK}"


@pytest.mark.parametrize("call", [SET, DEFAULT, MOST, NOW])
def test_a_setting_that_holds_it_is_told_whatever_else_is_not_read(call):
    assert finding({call: {"unreadable": NOT_SUPPORTED}}, under_load(0x2)).severity == "WARNING"


@pytest.mark.parametrize("mask", [0x0, 0x1, 0x4, 0x40])
def test_what_else_holds_it_is_no_setting(mask):
    assert finding({NOW: mask}, under_load(mask)).severity == "OK"


def test_older_drivers_tell_the_reasons_by_another_name():
    gone = {NOW: {"unreadable": "NVML: Function Not Found"}}
    assert finding({**gone, "CurrentClocksThrottleReasons": 0x2}).severity == "WARNING"
    assert finding(gone).severity == "UNKNOWN"


def test_a_low_clock_that_was_read_counts_though_the_highest_was_not():
    [one] = found(clock_lock, gpu={"ApplicationsClock:1": 900, "MaxClockInfo:1": {"unreadable": "NVML: Unknown Error"}})
    assert one.severity == "WARNING"
