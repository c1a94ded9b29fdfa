import pytest
from recorded import NOT_SUPPORTED, RecordedHost, found

from gputune.checks import fabric_manager
from gputune.host import Unreadable

EIGHT, STATE = "nvidia-h200-x8", "GpuFabricInfoV"
NO_STATE = {STATE: {"unreadable": NOT_SUPPORTED}}
AMPERE = NO_STATE | {"Architecture": 7}
NOT_READY = {"devices": None, "gaps": {"devices": "RuntimeError: Error 802: system not yet initialized"}}


def state(number, status=0, mask=0):
    return {STATE: {"state": number, "status": status, "healthMask": mask}}


def of_gpu_3(gpu, **overrides):
    return found(fabric_manager, EIGHT, gpu=gpu, gpu_index=3, **overrides)[3]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (state(1), " is not started"),
        (state(2), " is in progress"),
        (state(3, status=999), " failed with NVML error 999"),
        (state(3, status=999, mask=0b01), " failed with NVML error 999"),
    ],
)
def test_one_that_is_not_registered(answer, told):
    one = of_gpu_3(answer)
    assert (one.severity, one.subject) == ("ERROR", "GPU 3")
    assert one.message == f"its registration with the NVSwitch fabric{told}"
    assert "sudo systemctl restart nvidia-fabricmanager && nvidia-smi -q -i 00000000:00:09.0 " in one.remedy
    assert "on the host, as root; ends its jobs; drain it first" in one.remedy
    assert "exactly the driver's version: 580.159.04" in one.remedy


@pytest.mark.parametrize(("number", "waits"), [(1, False), (2, True)])
def test_one_in_progress_is_worth_a_minute_s_wait(number, waits):
    assert of_gpu_3(state(number)).remedy.startswith("sleep 60 && sudo systemctl restart ") == waits


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (0b01, "degraded bandwidth"),
        (0b01_01_01_01, "degraded bandwidth, route recovery, unhealthy route, access timeout recovery"),
        (0b11, "degraded bandwidth (3)"),
        (2 << 14, "a disconnected fabric manager"),
        (9 << 8, "an incorrect configuration (9)"),
        (1 << 18, "faults of unknown meaning (0x40000)"),
    ],
)
def test_what_the_fabric_complains_of_is_a_warning(mask, told):
    one = of_gpu_3(state(3, mask=mask))
    assert (one.severity, one.subject) == ("WARNING", "GPU 3")
    assert one.message == f"the NVSwitch fabric reports {told}"
    assert "systemctl restart nvidia-fabricmanager" in one.remedy


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (2 << 8, "a wrong system GUID"),
        (3 << 8, "a wrong chassis serial number"),
        (4 << 8, "no partition"),
        (5 << 8, "insufficient NVLinks"),
        (6 << 8, "incompatible GPU firmware"),
        (7 << 8, "an invalid location"),
        (8 << 8, "an invalid GPU state"),
        (2 << 12, "no assigned partition"),
        (2 << 14 | 5 << 8 | 1, "degraded bandwidth, insufficient NVLinks, a disconnected fabric manager"),
    ],
)
def test_a_gpu_that_the_fabric_refuses_is_an_error(mask, told):
    one = of_gpu_3(state(3, mask=mask))
    assert (one.severity, one.subject) == ("ERROR", "GPU 3")
    assert one.message == f"the NVSwitch fabric reports {told}"
    assert "drain it first" in one.remedy


@pytest.mark.parametrize("mask", [0, 1 << 8, 1 << 8 | 1 << 12 | 1 << 14 | 0b10_10_10_10])
def test_a_mask_that_reports_each_part_as_sound_or_nothing_is_fine(mask):
    assert of_gpu_3(state(3, mask=mask)).severity == "OK"


def test_a_fabric_that_says_that_nothing_is_wrong_with_it():
    assert of_gpu_3(state(3, mask=0b10_10_10_10)).severity == "OK"


def test_a_driver_of_unknown_version():
    nvml = {**RecordedHost(EIGHT).nvml_answers, "DriverVersion": {"unreadable": "NVML: Unknown Error"}}
    one = of_gpu_3(state(1), nvml=nvml)
    assert "see nvidia-smi" in one.remedy


@pytest.mark.parametrize("machine", ["nvidia-h200-x1", EIGHT])
def test_torch_cannot_start_before_it(machine):
    [one] = found(fabric_manager, machine, torch=NOT_READY)
    assert (one.severity, one.subject) == ("ERROR", None)
    assert "system not yet initialized" in one.message
    assert "systemctl restart nvidia-fabricmanager" in one.remedy


def test_a_gpu_in_no_fabric():
    [one] = found(fabric_manager)
    assert (one.severity, one.subject) == ("NOT_APPLICABLE", "GPU 0")
    assert "not part of an NVSwitch fabric" in one.message


@pytest.mark.parametrize("links", [{"NvLinkRemoteDeviceType:0": 0}, {"NvLinkState:0": {"unreadable": NOT_SUPPORTED}}])
def test_a_gpu_whose_links_lead_to_no_switch(links):
    one = of_gpu_3(NO_STATE | links)
    assert one.severity == "NOT_APPLICABLE"
    assert one.message == "no link of this GPU leads to an NVSwitch"


@pytest.mark.parametrize("call", ["NvLinkRemoteDeviceType:0", "NvLinkState:0"])
def test_links_that_are_not_read_may_lead_to_one(call):
    assert of_gpu_3(NO_STATE | {call: {"unreadable": "NVML: Unknown Error"}}).severity == "UNKNOWN"


@pytest.mark.parametrize(("number", "architecture"), [(5, "Volta"), (6, "Turing"), (7, "Ampere"), (8, "Ada")])
def test_an_older_gpu_on_a_switch_tells_by_starting(number, architecture):
    one = of_gpu_3(NO_STATE | {"Architecture": number})
    assert one.severity == "NOT_APPLICABLE"
    assert architecture in one.message
    assert "torch can use the GPU" in one.message


@pytest.mark.parametrize("number", [9, 10, {"unreadable": "NVML: Unknown Error"}])
def test_a_newer_gpu_on_a_switch_that_tells_no_state_is_unknown(number):
    assert of_gpu_3(NO_STATE | {"Architecture": number}).severity == "UNKNOWN"


@pytest.mark.parametrize("torch", [Unreadable("no answer"), {"devices": []}])
def test_an_older_gpu_on_a_switch_without_torch_is_unknown(torch):
    one = of_gpu_3(AMPERE, torch=torch)
    assert one.severity == "UNKNOWN"
    assert NOT_SUPPORTED in one.message


@pytest.mark.parametrize(
    "answer", [{STATE: {"unreadable": "NVML: Unknown Error"}}, state(4), state(3, -1), state(3, mask=-1)]
)
def test_what_is_not_read_is_unknown(answer):
    one = of_gpu_3(answer)
    assert one.severity == "UNKNOWN"
    assert "NVML" in one.message


@pytest.mark.parametrize("torch", [{}, NOT_READY])
def test_no_gpu(torch):
    assert [one.severity for one in found(fabric_manager, "cpu-only", torch=torch)] == ["NOT_APPLICABLE"]
