import pytest
from recorded import RecordedHost, found

from gputune.checks import gpu_lost
from gputune.host import Unreadable

EIGHT, BUS = "nvidia-h200-x8", "/sys/bus/pci/devices"
BARE = {"/.dockerenv": None}
NO_DRIVER = "PCI_CLASS=30200\nPCI_ID=10DE:2335\n"


def finding(listed=range(8), given=8, **overrides):
    """The finding if NVML and torch list some of eight GPUs, and the container has the first `given` device files."""
    host = RecordedHost(EIGHT)
    nvml = {**host.nvml_answers, "devices": [host.nvml_answers["devices"][index] for index in listed]}
    torch = {"devices": [host.torch["devices"][index] for index in listed]}
    files = {f"/dev/nvidia{index}": None for index in range(given, 8)} | overrides.pop("files", {})
    [one] = found(gpu_lost, EIGHT, nvml=nvml, torch=torch, files=files, **overrides)
    return one


def test_all_are_listed():
    one = finding()
    assert one.severity == "OK"
    assert "(8)" in one.message


@pytest.mark.parametrize("files", [{}, BARE])
@pytest.mark.parametrize("visible", [None, "", "all", "void", "none", "0,1", "0,1,2,3,4,5,6,7"])
def test_one_that_is_missing_where_all_are_meant(visible, files):
    one = finding([0, 1, 3, 4, 5, 6, 7], environ={"NVIDIA_VISIBLE_DEVICES": visible}, files=files)
    assert (one.severity, one.subject) == ("ERROR", "0000:00:08.0")
    assert "0000:00:08.0" in one.message
    assert "sudo dmesg | grep NVRM" in one.remedy
    assert "reboot" in one.remedy


def test_every_missing_one_is_named():
    one = finding([0, 2, 3, 4, 5, 6])
    assert "0000:00:07.0, 0000:00:0d.0" in one.message


def test_none_is_left():
    one = finding([], files=BARE)
    assert one.severity == "ERROR"
    assert "0000:00:06.0" in one.message


@pytest.mark.parametrize(("listed", "severity"), [(range(8), "UNKNOWN"), (range(7), "ERROR")])
def test_one_without_an_address_may_be_one_that_is_missing(listed, severity):
    one = finding(listed, gpu={"PciInfo": {"unreadable": "NVML: Unknown Error"}})
    assert one.severity == severity


@pytest.mark.parametrize("visible", [None, "all", "0,1,2,3"])
@pytest.mark.parametrize(
    ("listed", "severity"), [(5, "NOT_APPLICABLE"), (4, "NOT_APPLICABLE"), (3, "ERROR"), (0, "ERROR")]
)
def test_a_container_was_given_as_many_as_it_has_device_files(visible, listed, severity):
    one = finding(range(listed), 4, environ={"NVIDIA_VISIBLE_DEVICES": visible})
    assert one.severity == severity
    assert (one.message == "this container or job was given 4 of the 8 GPUs on the PCI bus") == (severity != "ERROR")


@pytest.mark.parametrize("files", [{}, BARE], ids=["in a container", "in a job of the host"])
@pytest.mark.parametrize(("listed", "severity"), [(2, "NOT_APPLICABLE"), (1, "ERROR")])
def test_a_cgroup_that_forbids_the_other_device_files_gave_only_these(files, listed, severity):
    denied = [f"/dev/nvidia{index}" for index in range(2, 8)]
    one = finding(range(listed), files=files, denied=denied)
    assert one.severity == severity
    assert ("given 2 of the 8 GPUs" in one.message) == (severity != "ERROR")


def test_some_of_the_given_are_missing_and_which_is_not_known():
    one = finding(range(1), 2)
    assert (one.severity, one.subject) == ("ERROR", None)
    assert "not listed by NVML: 1 of 0000:00:07.0" in one.message


@pytest.mark.parametrize("why", ["NVML: GPU is lost", "NVML: GPU requires a reset"])
@pytest.mark.parametrize("given", [8, 4])
def test_one_that_is_listed_but_does_not_answer(why, given):
    one = finding(given=given, gpu={"Temperature:0": {"unreadable": why}}, gpu_index=3)
    assert one.severity == "ERROR"
    assert (one.subject, one.message) == ("GPU 3", f"it no longer answers ({why})")
    assert "sudo dmesg | grep NVRM" in one.remedy


def test_one_that_does_not_answer_for_another_reason_is_not_lost():
    assert finding(gpu={"Temperature:0": {"unreadable": "NVML: Unknown Error"}}, gpu_index=3).severity == "OK"


@pytest.mark.parametrize("driver", ["vfio-pci", "nouveau"])
def test_one_that_another_driver_holds_is_not_lost(driver):
    uevent = f"DRIVER={driver}\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n"
    one = finding(range(7), files={**BARE, f"{BUS}/0000:00:0d.0/uevent": uevent})
    assert one.severity == "OK"
    assert "(7)" in one.message


def test_one_that_no_driver_holds_is_a_warning_of_its_own():
    one = finding(range(7), files={**BARE, f"{BUS}/0000:00:0d.0/uevent": NO_DRIVER})
    assert (one.severity, one.subject) == ("WARNING", "0000:00:0d.0")
    assert "held by no driver" in one.message


def test_where_no_driver_holds_any_none_is_lost():
    bus = {name: NO_DRIVER for name in RecordedHost(EIGHT).files if name.startswith(BUS)}
    one = finding([], files={**BARE, **bus})
    assert (one.severity, one.message) == ("NOT_APPLICABLE", gpu_lost.NONE)


def test_a_bus_that_is_not_seen_is_unknown():
    one = finding(files=dict.fromkeys(name for name in RecordedHost(EIGHT).files if name.startswith(BUS)))
    assert one.severity == "UNKNOWN"
    assert "shows no PCI bus" in one.message


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ({"nvml": Unreadable("no NVML")}, "NVML, which could list it, does not answer"),
        ({"nvml": Unreadable("no NVML"), "torch": {"devices": []}}, "NVML, which could list it, does not answer"),
        ({"gpu": {"PciInfo": {"unreadable": "no"}}}, "listed without an address"),
    ],
)
def test_no_address_to_compare_with_is_unknown(overrides, why):
    [one] = found(gpu_lost, **overrides)
    assert one.severity == "UNKNOWN"
    assert "0000:00:06.0" in one.message
    assert why in one.message
