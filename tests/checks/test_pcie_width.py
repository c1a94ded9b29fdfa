import pytest
from recorded import NOT_SUPPORTED, found

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


def test_each_gpu_is_asked_for_itself():
    findings = found(pcie_width, "nvidia-h200-x8", gpu={NOW: 8}, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "WARNING"] == ["GPU 3"]


@pytest.mark.parametrize("call", [NOW, MOST])
@pytest.mark.parametrize("answer", [{"unreadable": "NVML: Unknown Error"}, {"unreadable": NOT_SUPPORTED}, 0])
def test_what_is_not_read_is_unknown(call, answer):
    one = finding(**{call: answer})
    assert one.severity == "UNKNOWN"
    assert "NVML" in one.message


def test_a_share_of_a_gpu_has_no_lanes_of_its_own():
    one = finding(VirtualizationMode=2, **{NOW: {"unreadable": NOT_SUPPORTED}})
    assert one.severity == "NOT_APPLICABLE"
    assert "vGPU" in one.message


def test_a_laptop_s_gpu_rests_on_fewer_lanes():
    [one] = found(pcie_width, gpu={"Name": "NVIDIA GeForce RTX 4060 Laptop GPU", "CurrPcieLinkWidth": 8})
    assert one.severity == "NOT_APPLICABLE"
