import pytest
from recorded import found

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
