from dataclasses import replace

import pytest
from recorded import RecordedHost, facts_of

from gputune.checks import driver_cuda
from gputune.host import Unreadable


def finding(driver="13.0", torch="13.0", device_count=0, **gpu):
    facts = facts_of(gpu=gpu)
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
    assert found.remedy.startswith(
        f"apt install cuda-compat-{torch.replace('.', '-')} && "
        f"export LD_LIBRARY_PATH=/usr/local/cuda-{torch}/compat:$LD_LIBRARY_PATH; "
        f"or update the driver to one for CUDA {torch[:2]}, "
    )
    assert f"the torch build for CUDA {driver[:2]}.x" in found.remedy


@pytest.mark.parametrize("brand", [5, 6, 15, 16])
def test_no_compatibility_package_lifts_a_consumer_gpu(brand):
    found = finding("12.8", "13.0", Brand=brand)
    assert found.severity == "ERROR"
    assert found.remedy.startswith("update the driver to one for CUDA 13")


@pytest.mark.parametrize("brand", [1, 2, 12, 13, 14, {"unreadable": "NVML: Not Supported"}])
def test_one_may_lift_any_other(brand):
    assert "apt install cuda-compat-13-0" in finding("12.8", "13.0", Brand=brand).remedy


def test_a_compatibility_package_that_works_is_fine():
    found = finding("12.8", "13.0", device_count=1)
    assert found.severity == "OK"
    assert "compatibility package" in found.message
    assert "PTX may fail" in found.message


def test_a_lower_minor_version_is_compatible():
    found = finding("13.0", "13.2")
    assert found.severity == "OK"
    assert "minor-version compatible" in found.message
    assert "PTX may fail" in found.message


@pytest.mark.parametrize(("driver", "torch"), [("13.0", "13.0"), ("13.1", "13.0"), ("13.0", "12.8"), ("12.10", "12.9")])
def test_a_driver_that_is_new_enough(driver, torch):
    found = finding(driver, torch)
    assert found.severity == "OK"
    assert "compatible" not in found.message


def test_a_build_without_cuda():
    assert finding(torch=None).severity == "NOT_APPLICABLE"


def test_an_unread_driver():
    [found] = driver_cuda.check(facts_of(nvml=Unreadable("NVML: Not Found")), ())
    assert found.severity == "UNKNOWN"
    assert "CUDA version that the driver supports" in found.message


def test_a_driver_that_does_not_tell_its_cuda():
    answers = RecordedHost().nvml_answers | {"CudaDriverVersion_v2": {"unreadable": "NVML: Unknown Error"}}
    [found] = driver_cuda.check(facts_of(nvml=answers), ())
    assert (found.severity, "NVML: Unknown Error" in found.message) == ("UNKNOWN", True)


@pytest.mark.parametrize("version", ["", "unknown"])
def test_a_version_that_is_no_number_is_unknown(version):
    assert finding(driver=version).severity == "UNKNOWN"
    assert finding(torch=version).severity == "UNKNOWN"


def test_a_driver_that_does_not_tell_its_own_version():
    facts = facts_of()
    [found] = driver_cuda.check(replace(facts, driver=replace(facts.driver, version=None)), ())
    assert (found.severity, found.message) == ("OK", "driver ? supports CUDA 13.0, torch was built with 13.0")


def test_a_torch_that_did_not_answer():
    [found] = driver_cuda.check(facts_of(torch=Unreadable("no answer")), ())
    assert found.severity == "UNKNOWN"
    assert "no answer" in found.message
