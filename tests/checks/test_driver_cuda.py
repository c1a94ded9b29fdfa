from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import driver_cuda
from gputune.host import Unreadable


def finding(driver="13.0", torch="13.0", device_count=0):
    facts = facts_of()
    libraries = replace(facts.libraries, cuda=torch, device_count=device_count)
    facts = replace(facts, driver=replace(facts.driver, cuda=driver), libraries=libraries)
    [found] = driver_cuda.check(facts, ())
    return found


@pytest.mark.parametrize(("driver", "torch"), [("12.8", "13.0"), ("12.9", "13.2"), ("11.8", "12.1")])
def test_a_lower_major_version_is_an_error(driver, torch):
    found = finding(driver, torch)
    assert found.severity == "ERROR"
    assert "driver 580.159.04" in found.message
    assert driver in found.message
    assert torch in found.message
    assert f"cuda-compat-{torch.replace('.', '-')}" in found.remedy


def test_a_compatibility_package_that_works_is_fine():
    found = finding("12.8", "13.0", device_count=1)
    assert found.severity == "OK"
    assert "compatibility package" in found.message


def test_a_lower_minor_version_is_compatible():
    found = finding("13.0", "13.2")
    assert found.severity == "OK"
    assert "minor-version compatible" in found.message


@pytest.mark.parametrize(("driver", "torch"), [("13.0", "13.0"), ("13.1", "13.0"), ("13.0", "12.8"), ("12.10", "12.9")])
def test_a_driver_that_is_new_enough(driver, torch):
    found = finding(driver, torch)
    assert found.severity == "OK"
    assert "compatible" not in found.message


def test_a_build_without_cuda():
    assert finding(torch=None).severity == "NOT_APPLICABLE"


def test_an_unread_driver():
    assert finding(driver=None).severity == "UNKNOWN"


def test_a_torch_that_did_not_answer():
    [found] = driver_cuda.check(facts_of(torch=Unreadable("no answer")), ())
    assert found.severity == "UNKNOWN"
    assert "no answer" in found.message


def test_no_gpu():
    [found] = driver_cuda.check(facts_of("cpu-only"), ())
    assert found.severity == "NOT_APPLICABLE"
