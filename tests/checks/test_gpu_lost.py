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


LOST = ["NVML: GPU is lost", "NVML: GPU requires a reset", "NVML: Timeout"]


@pytest.mark.parametrize("why", LOST)
@pytest.mark.parametrize("given", [8, 4])
def test_one_that_is_listed_but_does_not_answer(why, given):
    one = finding(given=given, gpu={"Temperature:0": {"unreadable": why}}, gpu_index=3)
    assert one.severity == "ERROR"
    assert (one.subject, one.message) == ("GPU 3", f"it no longer answers ({why}): 0000:00:09.0")
    assert "sudo dmesg | grep NVRM" in one.remedy


@pytest.mark.parametrize("cause", ["no_answer", "killed", "exited"])
def test_one_whose_call_hangs_or_crashes_is_named_and_the_others_are_not_blamed(cause):
    asleep = {"Temperature:0": Unreadable("NVML: nvmlDeviceGetTemperature of GPU 3 does not answer", cause)}
    host = RecordedHost(EIGHT)
    silent = {call: Unreadable("NVML: not asked", "not_asked") for call in host.nvml_answers["devices"][0]}
    devices = [
        {**device, **silent} if index > 3 else device for index, device in enumerate(host.nvml_answers["devices"])
    ]
    devices[3] |= asleep
    findings = found(gpu_lost, EIGHT, nvml={**host.nvml_answers, "devices": devices})
    assert [(one.severity, one.subject) for one in findings] == [
        ("ERROR", "GPU 3"), *(("UNKNOWN", f"GPU {index}") for index in range(4, 8))
    ]  # fmt: skip
    assert "nvmlDeviceGetTemperature" in findings[0].message
    assert "0000:00:09.0" in findings[0].message
    assert "sudo reboot" in findings[0].remedy


def of_all_calls(why):
    return {call: {"unreadable": why} for call in RecordedHost(EIGHT).nvml_answers["devices"][0]}


@pytest.mark.parametrize("why", [*LOST, "NVML: Unknown Error", "NVML: Some New Error"])
def test_one_whose_handle_fails_is_named_by_the_only_address_that_is_left(why):
    one = finding(gpu=of_all_calls(why), gpu_index=5)
    assert (one.severity, one.subject) == ("ERROR", "GPU 5")
    assert one.message == f"it no longer answers ({why}): 0000:00:0b.0"
    assert "-i 0000:00:0b.0 --gpu-reset" in one.remedy or "sudo reboot" in one.remedy


def test_of_two_whose_handles_fail_the_addresses_are_told_together():
    answers = RecordedHost(EIGHT).nvml_answers
    devices = [of_all_calls("NVML: Unknown Error") if index in (2, 5) else device
               for index, device in enumerate(answers["devices"])]  # fmt: skip
    findings = found(gpu_lost, EIGHT, nvml={**answers, "devices": devices})
    assert [(one.severity, one.subject) for one in findings] == [("ERROR", "GPU 2"), ("ERROR", "GPU 5")]
    assert all("one of 0000:00:08.0, 0000:00:0b.0" in one.message for one in findings)


@pytest.mark.parametrize("calls", [["Temperature:0", "PowerUsage", "ComputeMode"], ["UUID", "Name", "PciInfo"]])
def test_three_calls_with_an_unknown_error_are_a_fault_of_the_gpu(calls):
    one = finding(gpu={call: {"unreadable": "NVML: Unknown Error"} for call in calls}, gpu_index=5)
    assert (one.severity, one.subject) == ("ERROR", "GPU 5")


@pytest.mark.parametrize("calls", [["GpuFabricInfoV"], ["RemappedRows", "MigMode"]])
def test_one_or_two_calls_are_not_however_many_fields_they_give(calls):
    assert finding(gpu={call: {"unreadable": "NVML: Unknown Error"} for call in calls}, gpu_index=5).severity == "OK"


@pytest.mark.parametrize("why", ["NVML: Not Supported", "NVML: Function Not Found"])
def test_a_driver_that_supports_none_of_these_calls_is_no_fault_of_a_gpu(why):
    calls = {call: {"unreadable": why} for call in ("UUID", "Name", "PciInfo", "MemoryInfo", "MemoryInfo:33554472")}
    assert finding(gpu=calls, gpu_index=5).severity == "UNKNOWN"


def test_one_that_this_job_may_not_ask_is_another_s():
    answers = RecordedHost(EIGHT).nvml_answers
    devices = [of_all_calls("NVML: Insufficient Permissions") if index > 1 else device
               for index, device in enumerate(answers["devices"])]  # fmt: skip
    denied = [f"/dev/nvidia{index}" for index in range(2, 8)]
    [one] = found(gpu_lost, EIGHT, nvml={**answers, "devices": devices}, denied=denied)
    assert (one.severity, one.message) == (
        "NOT_APPLICABLE", "this container or job was given 2 of the 8 GPUs on the PCI bus"
    )  # fmt: skip


@pytest.mark.parametrize("beyond", [None, {"SLURM_JOB_ID": "7"}])
def test_on_the_host_itself_a_device_file_that_is_gone_excuses_nothing(beyond):
    environ = {"NVIDIA_VISIBLE_DEVICES": None, **(beyond or {})}
    one = finding(range(7), 7, files=BARE, environ=environ)
    assert one.severity == ("NOT_APPLICABLE" if beyond else "ERROR")
    assert one.subject == (None if beyond else "0000:00:0d.0")


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


def test_a_card_without_its_power_cables():
    unplugged = {"unreadable": "NVML: Insufficient External Power"}
    silent = dict.fromkeys(RecordedHost(EIGHT).nvml_answers["devices"][3], unplugged)
    findings = found(gpu_lost, EIGHT, gpu=silent, gpu_index=3)
    assert [(one.severity, one.subject, "power cables" in (one.remedy or "")) for one in findings] == [
        ("ERROR", "GPU 3", True)
    ]
