"""A GPU's condition by NVML, one call for each fact; a call that fails costs no other fact."""

from dataclasses import asdict, fields

import pynvml
import pytest
from recorded import NOT_SUPPORTED, RecordedHost, facts_of, fits_its_types

from gputune.facts import Health
from gputune.facts.gap import Gaps
from gputune.facts.health import read
from gputune.host.nvml_calls import plain

CALLS = {
    "ApplicationsClock:1": ["sm_clock_application_mhz"],
    "ClockInfo:1": ["sm_clock_mhz"],
    "ClockInfo:2": ["memory_clock_mhz"],
    "ComputeMode": ["compute_mode"],
    "ComputeRunningProcesses": ["processes"],
    "CpuAffinity:64": ["cpu_affinity"],
    "CurrPcieLinkGeneration": ["pcie_generation"],
    "CurrPcieLinkWidth": ["pcie_width"],
    "CurrentClocksEventReasons": ["clocks_event_reasons"],
    "DefaultApplicationsClock:1": ["sm_clock_application_default_mhz"],
    "DefaultEccMode": ["ecc_default"],
    "DisplayActive": ["display_active"],
    "EccMode": ["ecc", "ecc_pending"],
    "EnforcedPowerLimit": ["power_enforced_limit_watts"],
    "FieldValues:[230]": ["recovery_action"],
    "GpuFabricInfoV": ["fabric_state", "fabric_status", "fabric_troubles"],
    "GraphicsRunningProcesses": ["graphics_processes", "graphics_memory_bytes"],
    "MPSComputeRunningProcesses": ["processes"],
    "MaxClockInfo:1": ["sm_clock_max_mhz"],
    "MaxPcieLinkGeneration": ["pcie_generation_max"],
    "MaxPcieLinkWidth": ["pcie_width_max"],
    "MigMode": ["mig", "mig_pending"],
    "NvLinkRemoteDeviceType:0": ["nvswitch"],
    "NvLinkState:0": ["nvlinks_up", "nvswitch"],
    "PersistenceMode": ["persistence_mode"],
    "PowerManagementDefaultLimit": ["power_default_limit_watts"],
    "PowerManagementLimit": ["power_limit_watts"],
    "PowerUsage": ["power_usage_watts"],
    "RemappedRows": ["row_remap_pending", "row_remap_failed"],
    "RetiredPagesPendingStatus": ["page_retirement_pending"],
    "Temperature:0": ["temperature_celsius"],
    "TemperatureThreshold:1": ["temperature_slowdown_celsius"],
    "TotalEccErrors:1,0": ["ecc_uncorrected"],
    "TotalEccErrors:1,1": ["ecc_uncorrected_ever"],
}
BROKEN = [{"unreadable": NOT_SUPPORTED}, {"unreadable": "NVML: Unknown Error"}]
GARBAGE = [None, -1, {}, b"", 1.5, True, "garbage", "", [None, None], [7, 7, 7, 7], 2**70]


def health(**overrides):
    return facts_of("nvidia-h200-x8", **overrides).gpus[0].health


def reading(call, answer):
    found = facts_of("nvidia-h200-x8", gpu={call: answer})
    assert fits_its_types(found)
    return found


def test_a_recorded_gpu():
    assert health() == Health(
        sm_clock_mhz=405, sm_clock_max_mhz=1980, sm_clock_application_mhz=1980, sm_clock_application_default_mhz=1980,
        memory_clock_mhz=3201, clocks_event_reasons=1, power_usage_watts=121.641, power_limit_watts=700.0,
        power_default_limit_watts=700.0, power_enforced_limit_watts=700.0, temperature_celsius=34,
        temperature_slowdown_celsius=89, pcie_generation=5, pcie_generation_max=5, pcie_width=16,
        pcie_width_max=16, ecc=True, ecc_pending=True, ecc_default=True, ecc_uncorrected=0, ecc_uncorrected_ever=0,
        row_remap_pending=False, row_remap_failed=False, page_retirement_pending=None, persistence_mode=True,
        compute_mode="default", mig=False, mig_pending=False, processes=0,
        graphics_processes=0, graphics_memory_bytes=0, display_active=False, recovery_action="none",
        nvlinks_up=(True,) * 18, nvswitch=True,
        fabric_state="completed", fabric_status=0, fabric_troubles=(), cpu_affinity="0-127",
    )  # fmt: skip


def test_every_field_comes_from_a_call():
    assert {name for names in CALLS.values() for name in names} == {field.name for field in fields(Health)}


@pytest.mark.parametrize("answer", BROKEN, ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_is_a_gap_and_costs_only_its_own_answer(call, answer):
    found = reading(call, answer)
    lost = [name for name, value in asdict(found.gpus[0].health).items() if value is None]
    assert set(lost) == {*CALLS[call], "page_retirement_pending"}
    reasons = {gap.reason for gap in found.gaps if gap.fact == f"gpu.0.{CALLS[call][0]}"}
    assert len(reasons) == 1


@pytest.mark.parametrize("answer", GARBAGE, ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_garbage_is_never_taken_for_an_answer_of_another_type(call, answer):
    nvml = RecordedHost("nvidia-h200-x8", gpu={call: answer}).nvml()
    assert fits_its_types(read(nvml, 0, Gaps()))


NO_NUMBER = {"unreadable": "NVML: Invalid Argument"}
PROCESS, CLIENT = {"pid": 1, "usedGpuMemory": None}, {"pid": 2, "usedGpuMemory": 7}
DRAWN = [{"pid": 1, "usedGpuMemory": 5}, {"pid": 3, "usedGpuMemory": 6}]
UNREAD, NOT_THERE = {"unreadable": "NVML: Unknown Error"}, {"unreadable": NOT_SUPPORTED}
READ = {
    "older drivers know the clocks' reasons by the older name": (
        {"CurrentClocksEventReasons": {"unreadable": "NVML: Function Not Found"}, "CurrentClocksThrottleReasons": 4},
        {"clocks_event_reasons": 4},
    ),
    "links end where NVML refuses the number": ({"NvLinkState:6": NO_NUMBER}, {"nvlinks_up": (True,) * 6}),
    "links end where NVML says that there are no more": ({"NvLinkState:6": NOT_THERE}, {"nvlinks_up": (True,) * 6}),
    "a link whose state cannot be read leaves the links unread": ({"NvLinkState:6": UNREAD}, {"nvlinks_up": None}),
    "links that are all down lead nowhere": ({f"NvLinkState:{link}": 0 for link in range(18)}, {"nvswitch": None}),
    "a process counts though MPS does not tell": (
        {"ComputeRunningProcesses": [PROCESS], "MPSComputeRunningProcesses": UNREAD}, {"processes": 1},
    ),
    "MPS clients are processes too": (
        {"ComputeRunningProcesses": [PROCESS], "MPSComputeRunningProcesses": [PROCESS, CLIENT]}, {"processes": 2},
    ),
    "a process that draws too is a graphics process only": (
        {"ComputeRunningProcesses": [PROCESS, CLIENT], "GraphicsRunningProcesses": DRAWN},
        {"processes": 1, "graphics_processes": 2, "graphics_memory_bytes": 11},
    ),
    "graphics memory is unknown if one process's is": (
        {"GraphicsRunningProcesses": [DRAWN[0], {"pid": 3, "usedGpuMemory": None}]},
        {"graphics_processes": 2, "graphics_memory_bytes": None},
    ),
    "compute processes count where graphics are not told": (
        {"ComputeRunningProcesses": [PROCESS], "GraphicsRunningProcesses": NOT_THERE},
        {"processes": 1, "graphics_processes": None},
    ),
} | {
    f"zero is no answer where there cannot be none: {call}": ({call: 0}, {CALLS[call][0]: None})
    for call in ("CurrPcieLinkWidth", "MaxPcieLinkGeneration", "TemperatureThreshold:1", "MaxClockInfo:1")
}  # fmt: skip


@pytest.mark.parametrize(("answers", "read_as"), READ.values(), ids=READ)
def test_what_is_read_of_answers(answers, read_as):
    found = health(gpu=answers)
    assert {field: getattr(found, field) for field in read_as} == read_as


FIELD = pynvml.c_nvmlFieldValue_t(fieldId=230, valueType=1, value=pynvml.c_nvmlValue_t(uiVal=4))


def field(**changes):
    return {"FieldValues:[230]": [plain(FIELD) | changes]}


def test_a_field_s_value_is_the_member_of_its_type():
    assert health(gpu=field()).recovery_action == "drain and reset"
    # the bytes of a double of 1.0 are another number in every other type
    odd = field(valueType=0, value=plain(pynvml.c_nvmlValue_t(dVal=1.0)))
    assert health(gpu=odd).recovery_action is None


@pytest.mark.parametrize(
    ("number", "cause"),
    [(2, "no_such_call"), (3, "not_supported"), (13, "no_such_call"), (15, "gpu_lost"), (16, "needs_reset"), (7, None)],
)
def test_a_field_has_an_error_of_its_own(number, cause):
    found = reading(**dict(zip(("call", "answer"), *field(nvmlReturn=number).items(), strict=True)))
    [gap] = [gap for gap in found.gaps if gap.fact == "gpu.0.recovery_action"]
    assert gap.cause == cause


@pytest.mark.parametrize(
    "garbage", [[], [{}], [None], [plain(FIELD) | {"valueType": 9}], [plain(FIELD) | {"value": 4}]]
)
def test_a_field_that_makes_no_sense_is_not_read(garbage):
    assert health(gpu={"FieldValues:[230]": garbage}).recovery_action is None
