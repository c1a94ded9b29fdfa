import pytest
from recorded import found

from gputune.checks import nvidia_visible_devices

VARIABLE, BUS = "NVIDIA_VISIBLE_DEVICES", "/sys/bus/pci/devices"
NO_BUS = {f"{BUS}/0000:00:00.0/uevent": None}


def host(*drivers):
    """Files of a host with a GPU for each of these kernel drivers."""
    return {
        f"{BUS}/0000:{number:02x}:00.0/uevent": f"DRIVER={driver}\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n"
        for number, driver in enumerate(drivers, 0x3B)
    }


def finding(value, files, machine="cpu-only"):
    [only] = found(nvidia_visible_devices, machine, environ={VARIABLE: value}, files=files)
    return only


@pytest.mark.parametrize("value", ["void", "none", ""])
def test_a_value_that_keeps_the_host_s_gpus_out_is_a_warning(value):
    warned = finding(value, host("nvidia", "nvidia", "vfio-pci"))
    assert (warned.severity, warned.subject) == ("WARNING", VARIABLE)
    assert f"{VARIABLE}={value} keeps the host's 2 GPUs out" in warned.message
    assert warned.remedy.startswith("docker run --gpus all IMAGE  # ")


@pytest.mark.parametrize("value", ["void", "none", "", None])
@pytest.mark.parametrize("files", [{}, host("vfio-pci"), host("nouveau")], ids=["no GPU", "given away", "nouveau's"])
def test_a_host_without_a_gpu_to_give_has_kept_nothing_out(value, files):
    spared = finding(value, files)
    assert spared.severity == "NOT_APPLICABLE"
    assert "the host has no NVIDIA GPU" in spared.message


@pytest.mark.parametrize(("value", "told"), [("void", "=void"), ("none", "=none"), (None, " is not set")])
def test_where_the_bus_is_out_of_sight_what_the_host_has_is_unknown(value, told):
    unread = finding(value, NO_BUS)
    assert unread.severity == "UNKNOWN"
    assert f"{VARIABLE}{told}; whether the host has a GPU could not be read" in unread.message
    assert BUS in unread.message


@pytest.mark.parametrize(("value", "told"), [(None, " is not set"), ("all", "=all"), ("0", "=0")])
def test_a_value_that_keeps_nothing_out_is_not_the_cause(value, told):
    spared = finding(value, host("nvidia"))
    assert spared.severity == "NOT_APPLICABLE"
    assert spared.message == f"{VARIABLE}{told}; the host has 1 GPU, this container none"


@pytest.mark.parametrize(("value", "told"), [("all", "=all"), ("void", "=void"), (None, " is not set")])
def test_a_gpu_that_is_here_was_let_in(value, told):
    fine = finding(value, {}, "nvidia-h200-x1")
    assert fine.severity == "OK"
    assert VARIABLE + told in fine.message


def test_a_device_file_is_a_gpu_too():
    assert finding("void", {"/dev/nvidia0": "", **host("nvidia")}).severity == "OK"


def test_a_pod_that_asks_for_no_gpu_is_rightly_given_void():
    files = {"/sys/bus/pci/devices/0000:3b:00.0/uevent": "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n"}
    environ = {"NVIDIA_VISIBLE_DEVICES": "void", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert [one.severity for one in found(nvidia_visible_devices, "cpu-only", files=files, environ=environ)] == [
        "NOT_APPLICABLE"
    ]
