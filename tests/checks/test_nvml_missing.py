import pytest
from recorded import facts_of

from gputune.checks import nvml_missing
from gputune.host import Unreadable

ABSENT = Unreadable("NVML: Shared Library Not Found")


def finding(machine="nvidia-h200-x1", **overrides):
    [found] = nvml_missing.check(facts_of(machine, **overrides), ())
    return found


def test_a_warning_while_torch_still_sees_the_gpu():
    found = finding(nvml=ABSENT)
    assert found.severity == "WARNING"
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in found.remedy
    assert "Shared Library Not Found" in found.message


def test_a_warning_where_only_torch_shows_the_gpu():
    found = finding(nvml=ABSENT, files={"/dev/nvidia0": None})
    assert found.severity == "WARNING"
    assert "torch's list of GPUs" in found.message
    assert "Shared Library Not Found" in found.message


def test_an_error_where_torch_sees_none_either():
    found = finding(nvml=ABSENT, torch={"devices": []})
    assert found.severity == "ERROR"
    assert "/dev/nvidia0" in found.message


def test_a_missing_binding_is_installed():
    missing = Unreadable("nvidia-ml-py is not installed: No module", "not_installed")
    assert finding(nvml=missing).remedy == "pip install nvidia-ml-py"


@pytest.mark.parametrize(
    ("granted", "told"), [("compute", "compute"), ("compute,graphics", "compute,graphics"), ("", "none")]
)
def test_a_container_started_without_it_is_started_with_it(granted, told):
    remedy = finding(nvml=ABSENT, environ={"NVIDIA_DRIVER_CAPABILITIES": granted}).remedy
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in remedy
    assert remedy.endswith(f"(it was started with {told})")


@pytest.mark.parametrize("granted", [None, "all", "compute,utility"])
def test_where_it_was_granted_the_driver_may_lack_it(granted):
    assert "libnvidia-ml.so.1" in finding(nvml=ABSENT, environ={"NVIDIA_DRIVER_CAPABILITIES": granted}).remedy


def test_an_nvml_of_another_version_is_not_missing():
    found = finding(nvml=Unreadable("NVML: Driver/library version mismatch", "version_mismatch"), torch={"devices": []})
    assert found.severity == "NOT_APPLICABLE"
    assert "another version" in found.message


def test_an_nvml_that_lists_nothing_is_unknown():
    class Mute:
        def system(self, name):
            raise Unreadable("NVML: Unknown Error")

        def count(self):
            raise Unreadable("NVML: Unknown Error")

    found = finding(nvml=Mute())
    assert found.severity == "UNKNOWN"
    assert "Unknown Error" in found.message
