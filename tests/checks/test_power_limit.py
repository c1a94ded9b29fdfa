import pytest
from recorded import found

from gputune.checks import power_limit

LIMIT, DEFAULT, ENFORCED = "PowerManagementLimit", "PowerManagementDefaultLimit", "EnforcedPowerLimit"


def finding(**gpu):
    [one] = found(power_limit, gpu=gpu)
    return one


@pytest.mark.parametrize(("limit", "watts"), [(500_000, "500"), (699_999, "699.999"), (0, "0")])
def test_a_limit_below_its_default(limit, watts):
    one = finding(**{LIMIT: limit})
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"its power limit is {watts} W; the default is 700 W"
    assert one.remedy == (
        "sudo nvidia-smi -i 00000000:00:06.0 -pl 700  # on the host, as root; changes the node; "
        "a cap may be deliberate: ask whoever runs the machine first"
    )


@pytest.mark.parametrize(("limit", "default"), [(700_000, 700_000), (700_001, 700_000), (300_000, 250_000)])
def test_a_limit_at_its_default_or_above(limit, default):
    one = finding(**{LIMIT: limit, DEFAULT: default})
    assert one.severity == "OK"
    assert f"{limit / 1000:g} W" in one.message


@pytest.mark.parametrize(
    ("enforced", "severity"), [(0, "WARNING"), (699_999, "WARNING"), (700_000, "OK"), (800_000, "OK")]
)
def test_a_lower_limit_of_the_board_or_the_rack(enforced, severity):
    one = finding(**{ENFORCED: enforced})
    assert (one.severity, one.subject) == (severity, "GPU 0")
    told = f"the board or the rack limits it to {enforced / 1000:g} W; the default is 700 W"
    assert (one.message == told) == (severity == "WARNING")
    assert ("management controller" in (one.remedy or "")) == (severity == "WARNING")


def test_its_own_limit_is_told_before_the_board_s():
    assert finding(**{LIMIT: 500_000, ENFORCED: 400_000}).message.startswith("its power limit is 500 W")


def test_a_low_limit_that_was_read_counts_though_another_was_not():
    unread = {"unreadable": "NVML: Not Supported"}
    [one] = found(power_limit, gpu={"PowerManagementLimit": 500_000, "EnforcedPowerLimit": unread})
    assert one.severity == "WARNING"
