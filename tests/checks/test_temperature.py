import pytest
from recorded import NOT_SUPPORTED, found

from gputune.checks import temperature

NOW, SLOWDOWN = "Temperature:0", "TemperatureThreshold:1"


def finding(gpu):
    [one] = found(temperature, gpu=gpu)
    return one


@pytest.mark.parametrize(
    ("now", "severity"), [(29, "OK"), (83, "OK"), (84, "WARNING"), (89, "WARNING"), (95, "WARNING")]
)
def test_five_degrees_below_its_slowdown_it_is_close(now, severity):
    one = finding({NOW: now})
    assert (one.severity, one.subject) == (severity, "GPU 0")
    assert one.message == f"{now} C; it slows itself down at 89 C"


def test_the_card_s_own_threshold_counts():
    assert finding({NOW: 84, SLOWDOWN: 100}).severity == "OK"


def test_the_remedy_is_to_cool_it():
    assert "cool the room" in finding({NOW: 88}).remedy


def test_each_gpu_is_asked_for_itself():
    findings = found(temperature, "nvidia-h200-x8", gpu={NOW: 86}, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "WARNING"] == ["GPU 3"]


@pytest.mark.parametrize("call", [NOW, SLOWDOWN])
@pytest.mark.parametrize("why", ["NVML: Unknown Error", NOT_SUPPORTED])
def test_what_is_not_read_is_unknown(call, why):
    one = finding({call: {"unreadable": why}})
    assert one.severity == "UNKNOWN"
    assert why in one.message


def test_a_share_of_a_gpu_has_no_temperature_of_its_own():
    one = finding({NOW: {"unreadable": NOT_SUPPORTED}, "VirtualizationMode": 2})
    assert one.severity == "NOT_APPLICABLE"
    assert "vGPU" in one.message
