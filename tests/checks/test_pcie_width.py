import pytest
from recorded import found

from gputune.checks import pcie_width

NOW, MOST = "CurrPcieLinkWidth", "MaxPcieLinkWidth"


def finding(**gpu):
    [one] = found(pcie_width, gpu=gpu)
    return one


@pytest.mark.parametrize(("now", "most"), [(15, 16), (8, 16), (1, 16), (4, 8)])
def test_fewer_lanes_than_card_and_slot_can_have(now, most):
    one = finding(**{NOW: now, MOST: most})
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"{now} PCIe lanes of {most} are in use"
    assert "reseat" in one.remedy


@pytest.mark.parametrize(("now", "most"), [(16, 16), (8, 8)])
def test_all_lanes(now, most):
    one = finding(**{NOW: now, MOST: most})
    assert (one.severity, one.message) == ("OK", f"all {now} PCIe lanes are in use")


def test_a_laptop_s_gpu_rests_on_fewer_lanes():
    [one] = found(pcie_width, gpu={"Name": "NVIDIA GeForce RTX 4060 Laptop GPU", "CurrPcieLinkWidth": 8})
    assert one.severity == "NOT_APPLICABLE"
