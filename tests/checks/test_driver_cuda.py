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


@pytest.mark.parametrize(
    ("driver", "torch", "index"),
    [
        ("12.8", "13.0", "cu128"),
        ("12.9", "13.2", "cu128"),
        ("11.8", "12.1", "cu118"),
        ("12.0", "13.0", "cu118"),
        ("11.2", "12.1", "cu118"),
    ],
)
def test_a_lower_major_version_is_an_error(driver, torch, index):
    found = finding(driver, torch)
    assert found.severity == "ERROR"
    assert "driver 580.159.04" in found.message
    assert driver in found.message
    assert torch in found.message
    assert found.remedy.startswith(
        "/opt/torch/.venv/bin/python3 -m pip install --force-reinstall torch "
        f"--index-url https://download.pytorch.org/whl/{index}  # or update the driver to one for CUDA {torch[:2]} "
    )
    assert f"sudo apt-get install cuda-compat-{torch.replace('.', '-')} && " in found.remedy
    assert f"LD_LIBRARY_PATH=/usr/local/cuda-{torch}/compat:$LD_LIBRARY_PATH, from NVIDIA's repository" in found.remedy


def test_a_driver_for_which_no_torch_is_built_has_to_be_updated():
    assert finding("10.2", "12.1").remedy.startswith("update the driver to one for CUDA 12")


def test_a_gpu_for_which_newer_builds_have_no_kernels_gets_an_older_one():
    assert "whl/cu126 " in finding("12.9", "13.0", CudaComputeCapability=[7, 0]).remedy


@pytest.mark.parametrize("brand", [5, 6, 15, 16])
def test_no_compatibility_package_lifts_a_consumer_gpu(brand):
    found = finding("12.8", "13.0", Brand=brand)
    assert found.severity == "ERROR"
    assert "cuda-compat" not in found.remedy


@pytest.mark.parametrize("brand", [1, 2, 12, 13, 14, {"unreadable": "NVML: Not Supported"}])
def test_one_may_lift_any_other(brand):
    assert "apt-get install cuda-compat-13-0" in finding("12.8", "13.0", Brand=brand).remedy


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
