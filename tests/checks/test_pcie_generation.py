from dataclasses import replace

import pytest
from making import row
from recorded import found

from gputune.checks import pcie_generation

MOST = "MaxPcieLinkGeneration"


def under_load(*generations, device="cuda:0"):
    seen = row("precision", "throughput", 100.0, device)
    return [replace(seen, conditions={"pcie_generation": generation}) for generation in generations]


def finding(*generations, **gpu):
    [one] = found(pcie_generation, measurements=under_load(*generations), gpu=gpu)
    return one


@pytest.mark.parametrize("seen", [1.0, 3.0, 4.0])
def test_a_link_that_stays_low_under_load(seen):
    one = finding(1.0, seen)
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"PCIe generation {seen:.0f} of 5 under load"
    assert "firmware" in one.remedy
    assert "reseat" in one.remedy


@pytest.mark.parametrize(("seen", "most"), [((5.0,), 5), ((1.0, 5.0, 1.0), 5), ((3.0,), 3)])
def test_a_link_that_once_reached_all(seen, most):
    one = finding(*seen, **{MOST: most})
    assert (one.severity, one.message) == ("OK", f"PCIe generation {most} under load")


def test_at_rest_a_low_link_says_nothing():
    one = finding(CurrPcieLinkGeneration=1)
    assert one.severity == "NOT_APPLICABLE"
    assert "gputune probe" in one.message


@pytest.mark.parametrize("conditions", [{}, {"throttle_reasons": 0.0}])
def test_a_load_under_which_it_could_not_be_read_is_unknown(conditions):
    [one] = found(pcie_generation, measurements=[replace(under_load(1.0)[0], conditions=conditions)])
    assert (one.severity, one.message) == ("UNKNOWN", "the probe could not read it under load")


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_load_elsewhere_says_nothing(device):
    [one] = found(pcie_generation, measurements=under_load(1.0, device=device))
    assert one.severity == "NOT_APPLICABLE"
