import pytest
from recorded import RecordedHost, found

from gputune.checks import driver_mismatch
from gputune.host import Unreadable

VERSION = "/proc/driver/nvidia/version"
REFUSED = Unreadable("NVML: Driver/library version mismatch", "version_mismatch")


def finding(**overrides):
    [only] = found(driver_mismatch, **overrides)
    return only


def module(version):
    return f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (builder)\n"


def test_both_of_one_version():
    assert (finding().severity, finding().message) == ("OK", "kernel module and libraries are both 580.159.04")


def test_nvml_that_refuses_the_kernel_module_is_an_error():
    one = finding(nvml=REFUSED, files={VERSION: module("570.86.10")})
    assert one.severity == "ERROR"
    assert "570.86.10" in one.message
    assert "Driver/library version mismatch" in one.message
    assert one.remedy.startswith("sudo reboot  # on the host, as root; ends its jobs; ")


def test_nvml_that_refuses_a_kernel_module_of_unknown_version():
    one = finding(nvml=REFUSED, files={VERSION: None})
    assert one.severity == "ERROR"
    assert "(version unknown) and the driver's libraries are of different versions" in one.message


def test_nvml_s_refusal_counts_where_no_device_file_tells_of_a_gpu():
    [one] = found(driver_mismatch, "cpu-only", nvml=REFUSED)
    assert one.severity == "ERROR"


@pytest.mark.parametrize("version", ["570.86.10", "580.159.03", "580.159"])
def test_versions_that_differ_are_an_error(version):
    one = finding(files={VERSION: module(version)})
    assert one.severity == "ERROR"
    assert f"module is {version}," in one.message
    assert "580.159.04" in one.message
    assert "reboot" in one.remedy


def test_libraries_whose_version_cannot_be_read_are_unknown():
    nvml = {**RecordedHost().nvml_answers, "DriverVersion": {"unreadable": "NVML: Unknown Error"}}
    one = finding(nvml=nvml)
    assert one.severity == "UNKNOWN"
    assert "Unknown Error" in one.message


@pytest.mark.parametrize("reason", ["nvidia-ml-py is not installed", "NVML: NVML Shared Library Not Found"])
def test_without_nvml_nothing_is_known(reason):
    one = finding(nvml=Unreadable(reason))
    assert one.severity == "UNKNOWN"
    assert reason in one.message


def test_in_wsl_the_kernel_module_is_windows():
    one = finding(files={VERSION: None, "/dev/nvidia0": None, "/dev/dxg": ""})
    assert one.severity == "NOT_APPLICABLE"
    assert "WSL" in one.message


def test_a_kernel_module_of_unknown_version_is_unknown():
    one = finding(files={VERSION: None})
    assert one.severity == "UNKNOWN"
    assert "libraries 580.159.04" in one.message


@pytest.mark.parametrize(
    ("overrides", "remedy"),
    [
        ({}, "docker restart CONTAINER  # on the host; ends its jobs; if it stays, the image has driver libraries"),
        ({"environ": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}}, 'kubectl delete pod "$HOSTNAME"  # ends its jobs; '),
        ({"files": {"/.dockerenv": None}}, "ldconfig -p | grep -E 'lib(cuda|nvidia-ml).so.1'  # lists the copies"),
    ],
)
def test_libraries_older_than_the_module_are_no_reason_to_reboot(overrides, remedy):
    files = {VERSION: module("590.44.01"), **overrides.get("files", {})}
    assert finding(files=files, environ=overrides.get("environ")).remedy.startswith(remedy)
