"""Every check on every recorded machine: no complaints, and nothing called healthy that was not read.

The golden reports check-*.txt in tests/golden have what each check says of these machines.
"""

import json
from dataclasses import replace
from functools import cache

import pytest
import recorded as recorded_files
from making import row
from recorded import NOT_SUPPORTED, RecordedHost, facts_of, found

from gputune import checks
from gputune.facts import Cpu, Driver, Facts, Gap, Libraries, Memory, Precision, Process
from gputune.host import Unreadable
from gputune.strict_types import convert

CALLS = sorted({*RecordedHost("nvidia-h200-x8").nvml_answers["devices"][0]})
HEALTHY = {"OK", "NOT_APPLICABLE"}
COMPLAINTS = {"WARNING", "ERROR"}
MACHINES = ["nvidia-h200-x1", "nvidia-h200-x8", "cpu-only"]
EIGHT = "nvidia-h200-x8"
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
    """Which checks complain, and about what."""
    return {(one.check, one.subject) for one in checks.run(facts, measurements) if one.severity in COMPLAINTS}


@pytest.mark.parametrize("name", checks.names())
@pytest.mark.parametrize("machine", MACHINES)
def test_no_complaint_about_a_recorded_machine(machine, name):
    findings = list(checks.ask(name, recorded(machine)))
    assert findings
    assert {finding.severity for finding in findings} <= HEALTHY
    assert {finding.check for finding in findings} == {name}


def test_an_ordinary_load_is_no_complaint_either():
    measured = load(device="cuda:3", throttle_reasons=4.0, pcie_generation=5.0)
    assert not complaints(recorded(EIGHT), measured)


def load(device="cuda:0", **conditions):
    return [replace(row("precision", "throughput", 100.0, device), conditions=conditions)]


def without(index):
    """The machine when NVML and torch have lost a GPU that is still on the bus."""
    host = RecordedHost(EIGHT)
    del host.nvml_answers["devices"][index]
    del host.torch["devices"][index]
    return {"nvml": host.nvml_answers, "torch": host.torch}


KMSG = "3,9,88,-;NVRM: Xid (PCI:0000:00:08): 79, pid=1, name=python, GPU has fallen off the bus.\n"
RESET = [{"fieldId": 230, "valueType": 1, "nvmlReturn": 0, "value": {"uiVal": 1}}]
FAULTS = {
    "uncorrectable ECC errors": ("ecc_errors", {"gpu": {"TotalEccErrors:1,0": 3}}),
    "row remapping pending": ("row_remapping", {"gpu": {"RemappedRows": [0, 1, 1, 0]}}),
    "row remapping failed": ("row_remapping", {"gpu": {"RemappedRows": [0, 1, 0, 1]}}),
    "page retirement pending": ("page_retirement", {"gpu": {"RetiredPagesPendingStatus": 1}}),
    "an NVLink down": ("nvlink_down", {"gpu": {"NvLinkState:7": 0}}),
    "all NVLinks down": ("nvlink_down", {"gpu": {f"NvLinkState:{link}": 0 for link in range(18)}}),
    "an Xid in the kernel log": ("xid_errors", {"files": {"/dev/kmsg": KMSG}}),
    "a GPU on the bus that NVML does not list": ("gpu_lost", without(2)),
    "Fabric Manager not started": ("fabric_manager", {"gpu": {"GpuFabricInfoV": {"state": 1}}}),
    "Fabric Manager in progress": ("fabric_manager", {"gpu": {"GpuFabricInfoV": {"state": 2}}}),
    "CUDA waits for Fabric Manager": (
        "fabric_manager",
        {"torch": {"devices": None, "gaps": {"devices": "RuntimeError: Error 802: system not yet initialized"}}},
    ),
    "half the PCIe lanes": ("pcie_width", {"gpu": {"CurrPcieLinkWidth": 8}}),
    "power limit below default": ("power_limit", {"gpu": {"PowerManagementLimit": 500_000}}),
    "application clocks lowered": ("clock_lock", {"gpu": {"ApplicationsClock:1": 1200}}),
    "clocks locked": ("clock_lock", {"gpu": {"CurrentClocksEventReasons": 0x2}}),
    "close to its slowdown temperature": ("temperature", {"gpu": {"Temperature:0": 86}}),
    "persistence mode off": ("persistence_mode", {"gpu": {"PersistenceMode": 0}}),
    "exclusive compute mode": ("compute_mode", {"gpu": {"ComputeMode": 3}}),
    "prohibited compute mode": ("compute_mode", {"gpu": {"ComputeMode": 2}}),
    "another process": ("gpu_in_use", {"gpu": {"ComputeRunningProcesses": [{"pid": 1, "usedGpuMemory": None}]}}),
    "memory in use": ("gpu_in_use", {"gpu": {"MemoryInfo:33554472": {"total": 150754820096, "used": 9 << 30}}}),
    "power held down by the rack": ("power_limit", {"gpu": {"EnforcedPowerLimit": 450_000}}),
    "a fabric with degraded bandwidth": (
        "fabric_manager",
        {"gpu": {"GpuFabricInfoV": {"state": 3, "status": 0, "healthMask": 1}}},
    ),
    "a GPU that is lost": ("gpu_lost", {"gpu": {call: {"unreadable": "NVML: GPU is lost"} for call in CALLS}}),
    "MIG on": ("mig_mode", {"gpu": {"MigMode": [1, 1]}}),
    "MIG on after a reset": ("mig_mode", {"gpu": {"MigMode": [0, 1]}}),
    "CPUs of another socket": ("numa", {"gpu": {"CpuAffinity:64": [0, 0, 1]}}),
    "ECC off": ("ecc_mode", {"gpu": {"EccMode": [0, 0]}}),
    "ECC off after a reset": ("ecc_mode", {"gpu": {"EccMode": [1, 0]}}),
    "a reset that NVML asks for": ("recovery_action", {"gpu": {"FieldValues:[230]": RESET}}),
    "fewer CUDA cores than the others": ("neighbours", {"gpu": {"NumGpuCores": 15360}}),
    "less memory than the others": ("neighbours", {"gpu": {"MemoryInfo:33554472": {"total": 75 << 30, "used": 0}}}),
    "other firmware than the others": ("neighbours", {"gpu": {"VbiosVersion": "96.00.30.00.01"}}),
    "a direct path switched off": ("nccl_variables", {"environ": {"NCCL_P2P_DISABLE": "1"}}),
    "a stub of libcuda": (
        "library_path",
        {"environ": {"LD_LIBRARY_PATH": "/opt/stubs"}, "files": {"/opt/stubs/libcuda.so.1": ""}},
    ),
    "GPUs of two kinds": ("gpu_mix", {"gpu": {"Name": "NVIDIA H100 80GB HBM3"}}),
}
LOADS = {
    "PCIe generation low under load": ("pcie_generation", {"pcie_generation": 3.0}),
    "hardware slowdown": ("throttling", {"throttle_reasons": 8.0}),
    "software thermal slowdown": ("throttling", {"throttle_reasons": 0x24}),
    "hardware thermal slowdown and power brake at once": ("throttling", {"throttle_reasons": 0xC4}),
    "clocks held by a setting under load": ("clock_lock", {"throttle_reasons": 6.0}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_exactly_the_check_that_asks_about_a_fault_complains(fault):
    name, injected = FAULTS[fault]
    assert {check for check, _ in complaints(facts_of(EIGHT, **({"gpu_index": 5} | injected)))} == {name}


@pytest.mark.parametrize("fault", [fault for fault, (_, injected) in FAULTS.items() if "gpu" in injected])
def test_and_only_about_the_gpu_that_has_it(fault):
    name, injected = FAULTS[fault]
    facts = facts_of(EIGHT, gpu_index=5, **injected)
    assert complaints(facts) == {(name, None if name == "gpu_mix" else "GPU 5")}
    remedies = [one.remedy for one in checks.ask(name, facts) if one.remedy and "sudo nvidia-smi -i" in one.remedy]
    assert all(f"sudo nvidia-smi -i {facts.gpus[5].pci_bus_id} " in remedy for remedy in remedies)


@pytest.mark.parametrize("fault", LOADS)
def test_exactly_the_check_that_asks_about_a_load_complains(fault):
    name, conditions = LOADS[fault]
    assert complaints(recorded(EIGHT), load("cuda:5", **conditions)) == {(name, "GPU 5")}


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
    """Facts that remember which of their fields were read."""

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
