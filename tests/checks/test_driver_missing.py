from dataclasses import replace

import pytest
from recorded import facts_of, found

from gputune.checks import driver_missing

BUS = "/sys/bus/pci/devices"
CARD = f"{BUS}/0000:00:06.0/uevent"


def uevent(driver, kind="30200", maker="10DE"):
    return (f"DRIVER={driver}\n" if driver else "") + f"PCI_CLASS={kind}\nPCI_ID={maker}:2335\n"


def finding(text, files=None, **overrides):
    [only] = found(driver_missing, "cpu-only", files={CARD: text, **(files or {})}, **overrides)
    return only


def test_loaded():
    [one] = found(driver_missing)
    assert (one.severity, one.message) == ("OK", "NVIDIA's kernel module 580.159.04 is loaded")


@pytest.mark.parametrize(("driver", "told"), [("nouveau", "(nouveau)"), (None, "(no driver)")])
@pytest.mark.parametrize("kind", ["30000", "30200"])
def test_a_gpu_that_nvidia_s_driver_does_not_hold(driver, told, kind):
    one = finding(uevent(driver, kind))
    assert (one.severity, one.subject) == ("WARNING", "0000:00:06.0")
    assert f"0000:00:06.0 {told}" in one.message
    blacklist = "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/"
    assert one.remedy.startswith(blacklist if driver else "sudo modprobe nvidia  # on the host, as root; ")
    assert ("Secure Boot" in one.remedy) == (driver is None)
    assert "sudo ubuntu-drivers install" in one.remedy
    assert "sudo apt install nvidia-driver" in one.remedy


@pytest.mark.parametrize(("wanted", "severity"), [("all", "ERROR"), ("0", "ERROR"), ("void", "WARNING")])
def test_it_is_an_error_where_a_gpu_is_asked_for(wanted, severity):
    assert finding(uevent(None), environ={"NVIDIA_VISIBLE_DEVICES": wanted}).severity == severity


def test_it_is_an_error_where_a_device_file_is_left():
    assert finding(uevent(None), {"/dev/nvidia0": ""}).severity == "ERROR"


def test_it_is_an_error_where_a_gpu_is_required():
    facts = replace(facts_of("cpu-only", files={CARD: uevent("nouveau")}), gpu_required=True)
    assert [one.severity for one in driver_missing.check(facts, ())] == ["ERROR"]


def test_every_gpu_is_named():
    one = finding(uevent("nouveau"), {f"{BUS}/0000:3b:00.0/uevent": uevent(None)})
    assert "0000:00:06.0 (nouveau), 0000:3b:00.0 (no driver)" in one.message


@pytest.mark.parametrize(
    "text",
    [
        uevent("vfio-pci"),
        uevent("pci-stub"),
        uevent("pciback"),
        uevent("snd_hda_intel", "40300"),
        uevent("mlx5_core", "20700"),
        uevent(None, maker="1002"),
    ],
)
def test_nothing_on_the_bus_that_needs_it(text):
    assert finding(text).severity == "NOT_APPLICABLE"


def test_in_wsl_the_kernel_module_is_windows():
    files = {"/proc/driver/nvidia/version": None, CARD: None, "/dev/nvidia0": None, "/dev/dxg": ""}
    [one] = found(driver_missing, files=files)
    assert one.severity == "NOT_APPLICABLE"
    assert "WSL" in one.message


@pytest.mark.parametrize(
    ("files", "reason"),
    [({f"{BUS}/0000:00:00.0/uevent": None}, "shows no PCI bus"), ({CARD: uevent(None, "garbage")}, "garbage")],
)
def test_a_bus_that_cannot_be_read_is_unknown(files, reason):
    [one] = found(driver_missing, "cpu-only", files=files)
    assert one.severity == "UNKNOWN"
    assert reason in one.message


def test_a_gpu_that_nvidia_s_driver_holds_without_telling_its_version_is_unknown():
    one = finding(uevent("nvidia"), {f"{BUS}/0000:3b:00.0/uevent": uevent(None)})
    assert one.severity == "UNKNOWN"
    assert "version could not be read" in one.message


def test_a_gpu_that_is_given_away_is_not_named():
    one = finding(uevent("vfio-pci"), {f"{BUS}/0000:3b:00.0/uevent": uevent(None)})
    assert (one.severity, one.subject) == ("WARNING", "0000:3b:00.0")
    assert "0000:00:06.0" not in one.message


def test_no_gpu():
    [one] = found(driver_missing, "cpu-only")
    assert one.severity == "NOT_APPLICABLE"
    assert one.message.startswith("there is no NVIDIA GPU on the PCI bus")
