import pytest
from recorded import facts_of

from gputune.checks import nvml_missing
from gputune.host import Unreadable

ABSENT = Unreadable("NVML: Shared Library Not Found", "library_not_found")


def finding(machine="nvidia-h200-x1", **overrides):
    [found] = nvml_missing.check(facts_of(machine, **overrides), ())
    return found


def test_a_warning_while_torch_still_sees_the_gpu():
    found = finding(nvml=ABSENT)
    assert found.severity == "WARNING"
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
    assert finding(nvml=missing, own_python="/opt/own tool/bin/python").remedy == (
        "'/opt/own tool/bin/python' -m pip install nvidia-ml-py"
    )


@pytest.mark.parametrize(
    ("granted", "told"), [("compute", "compute"), ("compute,graphics", "compute,graphics"), ("", "none")]
)
def test_a_container_started_without_it_is_started_with_it(granted, told):
    remedy = finding(nvml=ABSENT, environ={"NVIDIA_DRIVER_CAPABILITIES": granted}).remedy
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in remedy
    assert remedy.endswith(f"it was started with {told}")


def test_a_container_that_does_not_say_what_it_was_granted_is_started_with_it():
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in (
        finding(nvml=ABSENT, environ={"NVIDIA_DRIVER_CAPABILITIES": None}).remedy
    )


@pytest.mark.parametrize("granted", ["all", "compute,utility"])
def test_where_it_was_granted_the_driver_may_lack_it(granted):
    environ = {"NVIDIA_DRIVER_CAPABILITIES": granted}
    remedy = finding(nvml=ABSENT, environ=environ).remedy
    assert remedy.startswith("ldconfig -p | grep libnvidia-ml.so.1  # on the host; ")
    assert remedy.endswith("sudo apt-get install libnvidia-compute-580")


@pytest.mark.parametrize(
    ("overrides", "remedy"),
    [
        ({}, "sudo apt-get install libnvidia-compute-580  # as root; changes the node; on Debian: libnvidia-ml1; "),
        ({"files": {"/proc/driver/nvidia/version": None}}, "install the driver's libnvidia-ml.so.1"),
        ({"environ": {"APPTAINER_CONTAINER": "x.sif"}}, "apptainer exec --nv IMAGE  # "),
        (
            {"environ": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}},
            'env: [{name: NVIDIA_DRIVER_CAPABILITIES, value: "compute,utility"}]  # ',
        ),
    ],
)
def test_where_no_container_toolkit_gives_it_the_driver_does(overrides, remedy):
    environ = {"NVIDIA_DRIVER_CAPABILITIES": None, **overrides.get("environ", {})}
    files = {"/.dockerenv": None, **overrides.get("files", {})}
    assert finding(nvml=ABSENT, environ=environ, files=files).remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("driver_not_loaded", "sudo modprobe nvidia  # on the host, as root; "),
        ("gpu_lost", "sudo reboot  # on the host, as root; ends its jobs; "),
        ("needs_reset", "sudo reboot  # on the host, as root; ends its jobs; "),
        ("timeout", "sudo reboot  # on the host, as root; ends its jobs; "),
        ("unknown_error", "docker restart CONTAINER  # on the host; ends its jobs; "),
        ("no_permission", "ls -l /dev/nvidia*  # "),
        (None, "sudo dmesg | grep -iE 'nvrm|xid'  # on the host, as root; "),
    ],
)
@pytest.mark.parametrize(("devices", "severity"), [(None, "WARNING"), ([], "ERROR")])
def test_a_library_that_is_there_and_fails_is_not_to_be_installed(cause, remedy, devices, severity):
    torch = {} if devices is None else {"devices": devices}
    one = finding(nvml=Unreadable("NVML: it fails", cause), torch=torch)
    assert (one.severity, "NVML: it fails" in one.message) == (severity, True)
    assert one.remedy.startswith(remedy)
    assert "install" not in one.remedy


@pytest.mark.parametrize("cause", ["no_answer", "killed", "exited"])
@pytest.mark.parametrize("machine", ["nvidia-h200-x1", "nvidia-h200-x8"])
def test_an_nvml_that_hangs_or_crashes_is_an_error_whatever_torch_says(cause, machine):
    one = finding(machine, nvml=Unreadable("NVML: nvmlInit does not answer within 5 s", cause))
    assert (one.severity, "nvmlInit does not answer within 5 s" in one.message) == ("ERROR", True)
    assert one.remedy.startswith("sudo reboot  # ")


def test_so_is_a_list_of_gpus_that_never_comes():
    class Hung:
        def system(self, name):
            return "580.159.04" if name == "DriverVersion" else 13000

        def count(self):
            raise Unreadable("NVML: nvmlDeviceGetCount does not answer within 5 s", "no_answer")

    assert finding(nvml=Hung()).severity == "ERROR"


def test_one_gpu_that_hangs_is_not_nvml_s_fault_and_nvml_not_healthy():
    one = finding(gpu={"Temperature:0": Unreadable("NVML: it does not answer within 5 s", "no_answer")})
    assert (one.severity, "within 5 s" in one.message) == ("UNKNOWN", True)


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


@pytest.mark.parametrize(
    "answer",
    [Unreadable("NVML: Unknown Error", "unknown_error"), Unreadable("NVML: Timeout", "timeout"), 2**32 - 1, 257],
)
def test_a_driver_that_lists_what_cannot_be_is_at_fault(answer):
    class Lying:
        def system(self, name):
            return "580.159.04" if name == "DriverVersion" else 13000

        def count(self):
            if isinstance(answer, Unreadable):
                raise answer
            return answer

    found = finding(nvml=Lying())
    assert (found.severity, "cannot list the GPUs" in found.message) == ("ERROR", True)
    assert found.remedy.startswith("sudo dmesg")
