"""Every check on every recorded machine: no complaints, and nothing called healthy that was not read.

That a fault is found, by its own check alone and of its own GPU alone, is in tests/faults.

The golden reports check-*.txt in tests/golden have what each check says of these machines.
"""

import json
from dataclasses import replace
from functools import cache

import pytest
import recorded as recorded_files
from recorded import EIGHT, NOT_SUPPORTED, RecordedHost, facts_of, found, load

from gputune import checks
from gputune.facts import Cpu, Driver, Facts, Gap, Libraries, Memory, Precision, Process
from gputune.host import Unreadable
from gputune.strict_types import convert

CALLS = sorted({*RecordedHost("nvidia-h200-x8").nvml_answers["devices"][0]})
HEALTHY = {"OK", "NOT_APPLICABLE"}
COMPLAINTS = {"WARNING", "ERROR"}
MACHINES = ["nvidia-h200-x1", "nvidia-h200-x8", "cpu-only"]
LAPTOPS = {
    "as it is": {},
    "without torch": {"torch": Unreadable("no answer")},
    "with an old torch": {"torch": {"torch": "1.13.1"}},
    "with a CUDA build of torch": {"torch": {"cuda": "13.0", "devices": [], "arch_list": ["sm_90"]}},
    "with GPUs hidden": {"environ": {"CUDA_VISIBLE_DEVICES": ""}},
    "with a TF32 override": {"environ": {"NVIDIA_TF32_OVERRIDE": "1", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "TRUE"}},
    "with an image's void": {"environ": {"NVIDIA_VISIBLE_DEVICES": "void", "NVIDIA_DRIVER_CAPABILITIES": "all"}},
    "in WSL": {"files": {"/dev/dxg": ""}},
    "with a small /dev/shm": {"shm": [4096, 4096, 16384, 1, 1, 1, 1, 1, 0, 255]},
    "with an NVIDIA GPU without its driver": {
        "files": {"/sys/bus/pci/devices/0000:01:00.0/uevent": "DRIVER=nouveau\nPCI_CLASS=30000\nPCI_ID=10DE:2520\n"}
    },
    "without a home": {"environ": {"HOME": None}, "closed": ["/"]},
    "as an unknown user": {"user": (1234, None, None)},
}


@cache
def recorded(machine):
    return facts_of(machine)


def complaints(facts, measurements=()):
    return {(one.check, one.subject) for one in checks.run(facts, measurements) if one.severity in COMPLAINTS}


@pytest.mark.parametrize("name", checks.names())
@pytest.mark.parametrize("machine", MACHINES)
def test_no_complaint_about_a_recorded_machine(machine, name):
    findings = list(checks.ask(name, recorded(machine)))
    assert findings
    assert {finding.severity for finding in findings} <= HEALTHY
    assert {finding.check for finding in findings} == {name}


def test_an_ordinary_load_is_no_complaint_either():
    assert not complaints(recorded(EIGHT), [load("cuda:3", throttle_reasons=4.0, pcie_generation=5.0)])


READS = {
    "ecc_errors": ["EccMode", "TotalEccErrors:1,0", "TotalEccErrors:1,1"],
    "ecc_mode": ["EccMode"],
    "recovery_action": ["FieldValues:[230]"],
    "row_remapping": ["RemappedRows"],
    "page_retirement": ["RetiredPagesPendingStatus"],
    "nvlink_down": ["NvLinkState:0"],
    "fabric_manager": ["GpuFabricInfoV"],
    "pcie_width": ["CurrPcieLinkWidth", "MaxPcieLinkWidth"],
    "pcie_generation": ["MaxPcieLinkGeneration"],
    "power_limit": ["PowerManagementLimit", "PowerManagementDefaultLimit", "EnforcedPowerLimit"],
    "clock_lock": [
        "ApplicationsClock:1", "DefaultApplicationsClock:1", "MaxClockInfo:1", "CurrentClocksEventReasons",
    ],
    "temperature": ["Temperature:0", "TemperatureThreshold:1"],
    "persistence_mode": ["PersistenceMode"],
    "compute_mode": ["ComputeMode"],
    "gpu_in_use": ["ComputeRunningProcesses", "MPSComputeRunningProcesses"],
    "mig_mode": ["MigMode"],
    "numa": ["CpuAffinity:64"],
    "bf16_emulated": ["CudaComputeCapability"],
    "tf32_unsupported": ["CudaComputeCapability"],
    "torch_architecture": ["CudaComputeCapability"],
}  # fmt: skip
OF_SOME = {"page_retirement", "recovery_action"}  # whose absence means an architecture or driver without it
TELLS_WHY = ("GPU 0", "GPU 1")  # which get the two UNANSWERED
UNANSWERED = [{"unreadable": NOT_SUPPORTED}, {"unreadable": "NVML: Unknown Error"}]
GARBAGE = [None, -1, {}, "", 1.5, [None]]


def of_gpu(findings, index):
    return {one.check: one.severity for one in findings if one.subject in (f"GPU {index}", None)}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_goes_wrong_breaks_nothing_and_makes_nothing_healthy(call):
    """On each of the eight GPUs it goes wrong in another way."""
    host = RecordedHost(EIGHT)
    answers = zip(host.nvml_answers["devices"], UNANSWERED + GARBAGE, strict=True)
    devices = [{**device, call: answer} for device, answer in answers]
    findings = checks.run(facts_of(EIGHT, nvml={**host.nvml_answers, "devices": devices}))
    assert not [one for one in findings if "the check failed" in one.message]
    assert not [one for one in findings if one.severity in COMPLAINTS]
    asked = {name for name, calls in READS.items() if call in calls}
    for index in range(8):
        assert all(of_gpu(findings, index)[name] == "UNKNOWN" for name in asked - OF_SOME), index
        assert "OK" not in {of_gpu(findings, index)[name] for name in asked}, index
    told = [one.message for one in findings if one.check in asked - OF_SOME and one.subject in TELLS_WHY]
    assert all("(NVML: " in message for message in told), told


BY_CONSUMERS = ("clock_lock", "ecc_errors", "mig_mode", "page_retirement", "power_limit", "row_remapping")
BY_SHARES = (
    *BY_CONSUMERS, "compute_mode", "gpu_in_use", "pcie_generation", "pcie_width", "persistence_mode", "temperature",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind", "word"),
    [(name, {"Brand": brand}, "consumer") for name in BY_CONSUMERS for brand in (5, 6, 15, 16)]
    + [(name, {"VirtualizationMode": 2}, "vGPU") for name in BY_SHARES],
)
def test_hardware_that_lacks_it_is_named_where_the_driver_says_that_it_does_not_exist(name, kind, word):
    def judged(why, kind):
        older = {"Architecture": 5} if name == "page_retirement" else {}
        unread = {call: {"unreadable": why} for call in [*READS[name], "CudaComputeCapability"]}
        [one] = found(checks.load(name), gpu=unread | older | kind)
        return one

    for why in (NOT_SUPPORTED, "NVML: Function Not Found", "NVML: this call is deprecated"):
        one = judged(why, kind)
        assert (one.severity, word in one.message) == ("NOT_APPLICABLE", True), one.message
    assert judged("NVML: Unknown Error", kind).severity == "UNKNOWN"
    assert judged(NOT_SUPPORTED, {"VirtualizationMode": 1}).severity == "UNKNOWN", "a passed-through GPU is a whole one"


FROM_TORCH = {
    "anomaly_detection": "flags", "compile_needs": "compile", "determinism": "flags", "library_copies": "loaded",
    "precision_api": "api_conflict", "thread_count": "threads",
}  # fmt: skip


@pytest.mark.parametrize(("name", "field"), FROM_TORCH.items())
def test_what_torch_does_not_say_is_unknown(name, field):
    silent = Unreadable("no answer")
    missing = {"torch": None, field: None, "gaps": {"torch": "no answer"}}
    for torch in (silent, missing, {field: None, "gaps": {field: "AttributeError: no answer"}}):
        [one] = found(checks.load(name), torch=torch)
        assert (one.severity, "no answer" in one.message) == ("UNKNOWN", True), one.message


@pytest.mark.parametrize("answer", UNANSWERED + GARBAGE, ids=str)
def test_no_answer_at_all_is_unknown_everywhere(answer):
    host = RecordedHost(EIGHT)
    devices = [dict.fromkeys(CALLS, answer) for _ in range(8)]
    findings = checks.run(facts_of(EIGHT, nvml={**host.nvml_answers, "devices": devices}))
    assert not [one for one in findings if "the check failed" in one.message]
    for index in range(8):
        assert "OK" not in {of_gpu(findings, index)[name] for name in READS if name in of_gpu(findings, index)}


@pytest.mark.parametrize("laptop", LAPTOPS)
def test_nothing_is_an_error_on_a_laptop_without_a_gpu(laptop):
    findings = checks.run(facts_of("cpu-only", **LAPTOPS[laptop]))
    assert "ERROR" not in {finding.severity for finding in findings}
    assert not [finding for finding in findings if "failed" in finding.message]


class Watched:
    def __init__(self, facts):
        self.facts, self.read = facts, set()

    def __getattr__(self, name):
        self.read.add(name)
        return getattr(self.facts, name)


@pytest.mark.parametrize("name", checks.names())
def test_nothing_is_healthy_beside_a_gpu_of_which_nothing_was_read(name):
    facts = facts_of()
    unread = ("libraries.torch", "driver.nvml", "driver.xids", "cpu.quota", "pci_gpus", "memory.limit_bytes",
              "process.user", "process.folders", "process.open_files", "process.locked_bytes")  # fmt: skip
    blind = replace(
        facts,
        gpus=(),
        pci_gpus=None,
        driver=Driver(nvml=False),
        libraries=Libraries(),
        precision=Precision(),
        cpu=Cpu(logical_count=16, affinity_count=16, budget=16),
        memory=Memory(),
        container=replace(facts.container, infiniband=True),
        process=Process(),
        scheduler=replace(facts.scheduler, name="kubernetes"),
        gaps=tuple(Gap(fact=fact, reason="unread") for fact in unread),
    )
    watched = Watched(blind)
    healthy = {finding.severity for finding in checks.ask(name, watched)} & HEALTHY
    assert not healthy or watched.read & {"environment", "scheduler"}  # which are always known


def test_four_h200_as_check_itself_read_them_have_no_complaint_and_nothing_unknown():
    facts = convert(Facts, json.loads((recorded_files.MACHINES / "nvidia-h200-x4" / "facts.json").read_text()))
    assert len(facts.gpus) == 4
    assert {one.severity for one in checks.run(facts)} <= HEALTHY


@pytest.mark.parametrize("granted", [{"SLURM_JOB_GPUS": "3"}, {"SLURM_GPUS_ON_NODE": "1"}])
def test_a_job_with_one_gpu_is_told_nothing_of_its_neighbours_that_no_cgroup_hides(granted):
    host = RecordedHost(EIGHT)
    torch = {"devices": [host.torch["devices"][3]]}
    environ = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "3", "NVIDIA_VISIBLE_DEVICES": None, **granted}
    log = "6,1,1000000,-;NVRM: Xid (PCI:0000:00:06): 79, pid=1, GPU has fallen off the bus.\n"
    files = {"/.dockerenv": None, "/dev/kmsg": log, "/proc/uptime": "100.0 100.0\n"}
    faults = {"TotalEccErrors:1,0": 7, "CurrPcieLinkWidth": 8, "PowerManagementLimit": 300_000, "PersistenceMode": 0}
    facts = facts_of(EIGHT, torch=torch, environ=environ, files=files, gpu=faults, gpu_index=0)
    assert {one[1] for one in complaints(facts)} & {"GPU 0", "0000:00:06"} == set()
    mine = facts_of(EIGHT, torch=torch, environ=environ, files=files, gpu=faults, gpu_index=3)
    assert {check for check, subject in complaints(mine) if subject == "GPU 3"} >= {"ecc_errors", "pcie_width"}
