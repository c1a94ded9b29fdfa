"""Faults of one GPU among others, as NVML tells them: memory, links, clocks, heat, modes, recovery, differences."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from faults.changes import Change, having
from faults.fault import Expect, Fault, on_each
from faults.fault import fault as expecting_one
from faults.kinds import NO, recovery
from faults.machines import PLANS, Counting, Hanging, Machine

from gputune.host import Unreadable

NVML = "NVML API reference"
MEMORY = "NVIDIA, GPU Memory Error Management"
LAST = {"k80": 1, "p100": 0, "v100": 2, "t4": 0, "a100_sxm": 5, "a100_pcie": 1, "a10g": 0, "l4": 0, "l40s": 3,
    "h100": 5,
        "h200_x1": 0, "h200_x4": 2, "h200_x8": 6, "b200": 7, "rtx6000ada": 1, "rtxpro6000": 0, "gh200": 0, "gb200": 1,
        "rtx3090": 1, "rtx4090": 0, "rtx5090": 0, "gtx1660": 0, "laptop": 0, "a10_vgpu": 0, "wsl": 0}  # fmt: skip
"""Which GPU has the fault, by kind of machine."""
fault = partial(expecting_one, subject="GPU")


def answers(index: int, changed: Mapping[str, Any]) -> Any:
    def inject(made: Machine) -> None:
        made.gpus[index].update(changed)

    return inject


def of_gpu(  # noqa: PLR0917 - a row of the table
    name: str, kind: str, changed: Mapping[str, Any], check: str, severity: str, source: str, **more: Any
) -> Fault:
    more = {"touches": tuple(changed), **more}
    return fault(name, kind, answers(LAST[kind], changed), check, severity, f"GPU {LAST[kind]}", source, **more)


def on(kinds: str, name: str, *row: Any, **more: Any) -> list[Fault]:
    return on_each(kinds, of_gpu, name, *row, **more)


# Memory. Uncorrectable errors need a reset, whatever the card; what is pending works on, but needs one soon.
FAULTS = [
    *on("v100 t4 a100_sxm l40s h100 b200 gh200", "uncorrectable ECC errors",
        {"TotalEccErrors:1,0": 3, "TotalEccErrors:1,1": 3}, "ecc_errors", "ERROR",
        MEMORY + ": an uncorrectable error ends the program; reset the GPU", remedy="gpu-reset", touches=("ecc",)),
    *on("a100_sxm h100 b200 l4", "a row waits to be remapped", {"RemappedRows": [0, 1, 1, 0]}, "row_remapping",
        "WARNING", MEMORY + ", row-remapping pending flag"),
    *on("a100_pcie h100 gb200", "a row could not be remapped", {"RemappedRows": [0, 1, 0, 1]}, "row_remapping",
        "ERROR", MEMORY + ", row-remapping failure flag: RMA"),
    *on("p100 v100 t4", "pages wait to be retired", {"RetiredPagesPendingStatus": 1}, "page_retirement", "WARNING",
        "NVIDIA, Dynamic Page Retirement"),
    *on("t4 a100_sxm h100 l40s", "ECC off on a data-centre card",
        {"EccMode": [0, 0], "TotalEccErrors:1,0": NO, "TotalEccErrors:1,1": NO}, "ecc_mode", "WARNING",
        "nvidia-smi manual, ECC Mode: on by default; " + NVML + ", nvmlDeviceGetDefaultEccMode", touches=("ecc",)),
    *on("h100 l4", "ECC on only after the next reboot", {"EccMode": [0, 1], "TotalEccErrors:1,0": NO,
        "TotalEccErrors:1,1": NO}, "ecc_mode", "WARNING", "nvidia-smi manual, ECC Mode, Pending", touches=("ecc",)),
    *on("h100", "ECC off after the next reboot", {"EccMode": [1, 0]}, "ecc_mode", "WARNING",
        "nvidia-smi manual, ECC Mode, Pending", touches=("ecc",)),
]  # fmt: skip

# Links.
FAULTS += [
    *on("v100 a100_sxm h100 b200 gb200", "one NVLink down", {"NvLinkState:3": 0}, "nvlink_down", "ERROR",
        "NVIDIA, health validation, nvlink_active: no inactive link is tolerated"),
    of_gpu("all NVLinks down", "h100", {f"NvLinkState:{link}": 0 for link in range(18)}, "nvlink_down", "ERROR",
        "NVIDIA, health validation, nvlink_active"),
    of_gpu("all NVLinks down", "a100_sxm", {f"NvLinkState:{link}": 0 for link in range(12)}, "nvlink_down", "ERROR",
        "NVIDIA, health validation, nvlink_active"),
    *on("h100 b200", "not registered with the fabric", {"GpuFabricInfoV": {"state": 1, "status": 0, "healthMask": 0}},
        "fabric_manager", "ERROR", "Fabric Manager User Guide: CUDA starts only after the state Completed"),
    *on("h200_x8 gb200", "registering with the fabric", {"GpuFabricInfoV": {"state": 2, "status": 0, "healthMask": 0}},
        "fabric_manager", "ERROR", "Fabric Manager User Guide: CUDA starts only after the state Completed"),
    *on("h100 h200_x4", "registration with the fabric failed",
        {"GpuFabricInfoV": {"state": 3, "status": 999, "healthMask": 0}}, "fabric_manager", "ERROR",
        NVML + ", nvmlGpuFabricInfo, status"),
]  # fmt: skip


def _fabric(mask: int) -> dict[str, Any]:
    return {"GpuFabricInfoV": {"state": 3, "status": 0, "healthMask": mask, "cliqueId": 0}}


_HEALTH = NVML + ", NVML_GPU_FABRIC_HEALTH_MASK"
_MASKS = {
    "the fabric has degraded bandwidth": (1 << 0, "WARNING"),
    "the fabric recovers a route": (1 << 2, "WARNING"),
    "a route of the fabric is unhealthy": (1 << 4, "WARNING|ERROR"),
    "the fabric recovers from an access timeout": (1 << 6, "WARNING"),
    "fabric: wrong system GUID": (2 << 8, "ERROR"),
    "fabric: wrong chassis serial number": (3 << 8, "ERROR"),
    "fabric: no partition": (4 << 8, "ERROR"),
    "fabric: insufficient NVLinks": (5 << 8, "ERROR"),
    "fabric: incompatible GPU firmware": (6 << 8, "ERROR"),
    "fabric: invalid location": (7 << 8, "ERROR"),
    "fabric: no partition assigned": (2 << 12, "ERROR"),
    "fabric: manager disconnected": (2 << 14, "WARNING"),
}
"""A GPU with a wrong configuration or no partition is out of the fabric; the others work, slower or for the moment.
NVIDIA names the faults and gives no severity beyond `unhealthy` and `limited capacity`.
"""
FAULTS += [
    of_gpu(name, kind, _fabric(mask), "fabric_manager", severity, _HEALTH)
    for place, (name, (mask, severity)) in enumerate(_MASKS.items())
    for kind in (("h100", "gb200") if place >= 4 else ("h200_x8",))
]
FAULTS += [
    of_gpu("fabric: insufficient NVLinks beside fields that say well", "b200",
        _fabric(0x5AA | 5 << 8 | 1 << 12 | 1 << 14),
           "fabric_manager", "ERROR", _HEALTH),
]  # fmt: skip

# Clocks, power, heat, PCIe.
_REASONS = NVML + ", nvmlClocksEventReasons"
_SLOWDOWNS = {"hardware slowdown": 0x8, "software thermal slowdown": 0x20, "hardware thermal slowdown": 0x48,
              "power brake": 0x88}  # fmt: skip
FAULTS += [
    of_gpu(f"{name} at rest", kind, {"CurrentClocksEventReasons": bits | 1, "CurrentClocksThrottleReasons": bits | 1},
           "throttling", "WARNING", _REASONS, touches=("reasons",))
    for name, bits in _SLOWDOWNS.items() for kind in ("h100", "a100_sxm" if bits & 0x80 else "rtx4090")
]  # fmt: skip
FAULTS += [
    of_gpu("power brake at rest, of a driver with the older call", "k80", {"CurrentClocksThrottleReasons": 0x80},
        "throttling", "WARNING", NVML + ", nvmlClocksThrottleReasonHwPowerBrakeSlowdown", touches=("reasons",)),
    *on("h100 b200 v100 l4", "power limit lowered", {"PowerManagementLimit": 50_000, "EnforcedPowerLimit": 50_000},
        "power_limit", "WARNING", NVML + ", nvmlDeviceGetPowerManagementDefaultLimit", touches=("power",)),
    *on("rtx4090", "power limit lowered", {"PowerManagementLimit": 200_000, "EnforcedPowerLimit": 200_000},
        "power_limit", "WARNING", NVML + ", nvmlDeviceGetPowerManagementDefaultLimit", touches=("power",)),
    *on("h100 a100_sxm", "power held down by the rack", {"EnforcedPowerLimit": 250_000}, "power_limit", "WARNING",
        NVML + ", nvmlDeviceGetEnforcedPowerLimit: the lowest of all limits", touches=("power",)),
    *on("h100 a100_sxm v100", "application clock lowered", {"ApplicationsClock:1": 900}, "clock_lock", "WARNING",
        NVML + ", nvmlDeviceGetApplicationsClock", remedy="-rac"),
    *on("h100 l40s", "clock held by a setting", {"CurrentClocksEventReasons": 0x2}, "clock_lock", "WARNING",
        _REASONS + ", applications clocks setting", touches=("reasons",)),
    *on("h100 rtx4090 t4 laptop", "close to its slowdown temperature",
        {"Temperature:0": 88, "TemperatureThreshold:1": 90}, "temperature", "WARNING",
        NVML + ", nvmlDeviceGetTemperatureThreshold, slowdown"),
    *on("h100 a100_pcie l40s rtx4090", "half the PCIe lanes", {"CurrPcieLinkWidth": 8}, "pcie_width", "WARNING",
        NVML + ", nvmlDeviceGetMaxPcieLinkWidth"),
    *on("h200_x1 rtx3090", "one PCIe lane", {"CurrPcieLinkWidth": 1}, "pcie_width", "WARNING",
        NVML + ", nvmlDeviceGetMaxPcieLinkWidth"),
]  # fmt: skip

# Modes and use.
FAULTS += [
    *on("h100 v100 l4 t4", "persistence mode off", {"PersistenceMode": 0}, "persistence_mode", "WARNING",
        "NVIDIA, Driver Persistence"),
    *on("h100 rtx3090", "only one process at a time", {"ComputeMode": 3}, "compute_mode", "WARNING",
        "nvidia-smi manual, compute mode"),
    *on("k80", "only one thread at a time", {"ComputeMode": 1}, "compute_mode", "WARNING",
        "nvidia-smi manual, compute mode"),
    *on("h100 a100_pcie", "prohibited to every process", {"ComputeMode": 2}, "compute_mode", "ERROR",
        "nvidia-smi manual, compute mode"),
    *on("a100_pcie h100 rtxpro6000", "divided by MIG", {"MigMode": [1, 1]}, "mig_mode", "WARNING",
        "NVIDIA, MIG User Guide"),
    *on("a100_sxm b200", "MIG on after the next reset", {"MigMode": [0, 1]}, "mig_mode", "WARNING",
        "NVIDIA, MIG User Guide"),
    *on("h100", "MIG off after the next reset", {"MigMode": [1, 0]}, "mig_mode", "WARNING", "NVIDIA, MIG User Guide"),
    *on("h100 l40s rtx3090", "another process computes on it",
        {"ComputeRunningProcesses": [{"pid": 77, "usedGpuMemory": 4 << 30}]}, "gpu_in_use", "WARNING",
        NVML + ", nvmlDeviceGetComputeRunningProcesses", touches=("use",)),
    *on("h100", "an MPS client computes on it", {"MPSComputeRunningProcesses": [{"pid": 77, "usedGpuMemory": None}]},
        "gpu_in_use", "WARNING", NVML + ", nvmlDeviceGetMPSComputeRunningProcesses", touches=("use",)),
    *on("h200_x1 a10g", "memory held by a process out of sight",
        {"MemoryInfo:33554472": {"version": 33554472, "total": 24 << 30, "reserved": 600 << 20, "used": 9 << 30}},
        "gpu_in_use", "WARNING", NVML + ", nvmlDeviceGetMemoryInfo", touches=("use",)),
    of_gpu("a process computes on a desktop's card beside its screen", "rtx4090",
        {"ComputeRunningProcesses": [{"pid": 9000, "usedGpuMemory": 18 << 30}]}, "gpu_in_use", "WARNING",
        NVML + ", nvmlDeviceGetComputeRunningProcesses", touches=("use",)),
]  # fmt: skip

# What NVML itself says has to be done.
_ACTIONS = {1: ("GPU reset", "ERROR"), 2: ("node reboot", "ERROR"), 3: ("drain P2P", "ERROR"),
            4: ("drain and reset", "ERROR"), 6: ("bus reset", "ERROR"), 7: ("system reboot", "ERROR")}  # fmt: skip
FAULTS += [
    of_gpu(f"recovery action: {name}", kind, {"FieldValues:[230]": recovery(action)},
           "recovery_action", severity, MEMORY + ", recovery action flag", touches=("recovery",))
    for action, (name, severity) in _ACTIONS.items() for kind in (("h100", "b200", "gh200")[action % 3],)
]  # fmt: skip
FAULTS += on("a100_sxm l40s rtx5090", "recovery action: GPU reset", {"FieldValues:[230]": recovery(1)},
             "recovery_action", "ERROR", MEMORY + ", recovery action flag", touches=("recovery",))  # fmt: skip


# One card that is not like its neighbours.
NEIGHBOURS = "neighbours|gpu_mix"


def _fewer_sms(index: int) -> Any:
    def inject(made: Machine) -> None:
        made.torch["devices"][index]["multi_processor_count"] -= 2
        if "NumGpuCores" in made.gpus[index]:
            made.gpus[index]["NumGpuCores"] -= 256

    return inject


def _less_memory(index: int, share: float) -> Any:
    def inject(made: Machine) -> None:
        gpu, seen = made.gpus[index], made.torch["devices"][index]
        for call in ("MemoryInfo", "MemoryInfo:33554472"):
            gpu[call] = {**gpu[call], "total": int(gpu[call]["total"] * share)}
        seen["total_memory"] = int(seen["total_memory"] * share)

    return inject


def _odd(name: str, kind: str, inject: Any, source: str, calls: tuple[str, ...] = ()) -> Fault:
    more = (*calls, "power") if "default power" in name else calls
    touches = ("alike", "sms", "memory", "name", *more)
    return fault(name, kind, inject, NEIGHBOURS, "WARNING", (f"GPU {LAST[kind]}", None), source, touches=touches)


FAULTS += [
    *(_odd("fewer multiprocessors than its neighbours", kind, _fewer_sms(LAST[kind]),
        NVML + ", nvmlDeviceGetNumGpuCores; torch, multi_processor_count") for kind in ("h100", "a100_sxm", "b200")),
    *(_odd("a tenth less memory than its neighbours", kind, _less_memory(LAST[kind], 0.9),
        NVML + ", nvmlDeviceGetMemoryInfo") for kind in ("h100", "h200_x4")),
    _odd("2 % less memory than its neighbours", "h100", _less_memory(5, 0.98),
        NVML + ", nvmlDeviceGetMemoryInfo; Xid 168, reduced GPU memory capacity"),
    *(_odd(f"another {what} than its neighbours", kind, answers(LAST[kind], changed), NVML + f", {call}",
        tuple(changed)) for what, kind, call, changed in (("VBIOS", "h100", "nvmlDeviceGetVbiosVersion",
        {"VbiosVersion": "96.00.30.00.01"}), ("VBIOS", "a100_sxm", "nvmlDeviceGetVbiosVersion",
        {"VbiosVersion": "92.00.19.00.10"}), ("GSP firmware", "h200_x8", "nvmlDeviceGetGspFirmwareVersion",
        {"GspFirmwareVersion": "570.86.15"}), ("GSP firmware (none)", "h100", "driver README, GSP Firmware",
        {"GspFirmwareVersion": NO}), ("highest clock", "h100", "nvmlDeviceGetMaxClockInfo",
        {"MaxClockInfo:1": 1755, "ApplicationsClock:1": 1755, "DefaultApplicationsClock:1": 1755}),
        ("default power limit", "b200", "nvmlDeviceGetPowerManagementDefaultLimit",
        {"PowerManagementDefaultLimit": 800_000, "PowerManagementLimit": 800_000, "EnforcedPowerLimit": 800_000}),
        ("highest PCIe generation", "h100", "nvmlDeviceGetMaxPcieLinkGeneration",
        {"MaxPcieLinkGeneration": 4, "CurrPcieLinkGeneration": 4}),
        ("highest PCIe width", "l40s", "nvmlDeviceGetMaxPcieLinkWidth",
        {"MaxPcieLinkWidth": 8, "CurrPcieLinkWidth": 8}))),
    Fault("a GPU of another kind", "h100", answers(5, {"Name": "NVIDIA H200"}),
        (Expect("gpu_mix", "WARNING", (None, "GPU 5")),), "CUDA Programming Guide, CUDA_DEVICE_ORDER",
        touches=("name", "sms", "memory"), subject="GPU", also=("neighbours",)),
]  # fmt: skip


# A GPU that does not answer.
LOST = "gpu_lost"


def calls(made: Machine, index: int) -> list[str]:
    return [call for call, answer in made.gpus[index].items() if answer != NO]


def every_call(error: str, index: int) -> Any:
    def inject(made: Machine) -> None:
        made.gpus[index] |= {call: {"unreadable": f"NVML: {error}"} for call in made.gpus[index]}

    return inject


def hang(index: int, call: str) -> Change:
    return having(wrap=lambda nvml: Hanging(nvml, index, call))


def _dead(name: str, kind: str, inject: Any, source: str, check: str = LOST, also: tuple[str, ...] = ()) -> Fault:  # noqa: PLR0917 - a row of the table
    return fault(name, kind, inject, check, "ERROR", f"GPU {LAST[kind]}", source, also=also, touches=("*gpu",))


FAULTS += [
    *(_dead(f"every call answers {error!r}", kind, every_call(error, LAST[kind]), NVML + ", nvmlReturn_t") for error,
        kinds in {"GPU is lost": "h100 a100_sxm rtx4090 l4", "GPU requires a reset": "h100 b200 v100",
        "Unknown Error": "h100 h200_x1 l40s", "Timeout": "h100 gb200"}.items() for kind in kinds.split()),
    *(_dead(f"its temperature answers {error!r}", kind, answers(LAST[kind],
        {"Temperature:0": {"unreadable": f"NVML: {error}"}}),
        NVML + ", NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED") for error,
        kind in (("GPU is lost", "h100"), ("GPU requires a reset", "a100_sxm"))),
    *(_dead(f"nvmlDeviceGet{call} hangs", kind, hang(LAST[kind], call),
        "a driver that waits for a dead GPU; NVML has no timeout", "gpu_lost|nvml_missing") for call,
        kind in (("Name", "h100"), ("Temperature", "h100"), ("MemoryInfo", "a100_sxm"), ("PciInfo", "b200"),
        ("NvLinkState", "h200_x8"), ("PowerUsage", "t4"), ("CurrPcieLinkWidth", "rtx4090"))),
]  # fmt: skip


def count(answer: Any) -> Change:
    return having(wrap=lambda nvml: Counting(nvml, answer))


def init(reason: str, cause: Any, devices: bool = True) -> Any:
    """NVML does not come up; torch, which asks the driver by another library, may all the same see its GPUs."""

    def inject(made: Machine) -> None:
        made.nvml = Unreadable(f"NVML: {reason}", cause)
        if not devices:
            made.torch["devices"] = None
            made.torch["gaps"] = {"devices": "RuntimeError: CUDA unknown error"}

    return inject


def _no_nvml(name: str, kind: str, inject: Any, severity: str, **more: Any) -> Fault:
    check = more.pop("check", "nvml_missing|gpu_lost")
    subjects = (None, "NVML", *(f"GPU {index}" for index in range(PLANS[kind].count)))
    return fault(name, kind, inject, check, severity, subjects, f"{NVML}, nvmlInit", touches=("*gpu",), **more)


NOT_INSTALL = r"apt(-get)? install|install the driver's"
FAULTS += [
    _no_nvml("NVML hangs while it comes up", "h100", init("nvmlInit does not answer within 5 s", "no_answer"),
        "ERROR", no_remedy=NOT_INSTALL),
    _no_nvml("NVML hangs while it comes up, and CUDA with it", "l40s",
        init("nvmlInit does not answer within 5 s", "no_answer", devices=False), "ERROR", also=("gpu_absent",),
        no_remedy=NOT_INSTALL),
    _no_nvml("NVML crashes while it comes up", "h100", init("nvmlInit crashed the process that asked it (SIGSEGV)",
        "killed", devices=False), "ERROR", also=("gpu_absent",), no_remedy=NOT_INSTALL),
    _no_nvml("driver not loaded", "l4", init("Driver Not Loaded", "driver_not_loaded", devices=False), "ERROR",
        also=("gpu_absent", "driver_missing"), no_remedy=NOT_INSTALL),
    _no_nvml("NVML answers that a GPU is lost", "h100", init("GPU is lost", "gpu_lost", devices=False), "ERROR",
        also=("gpu_absent",), no_remedy=NOT_INSTALL),
    _no_nvml("NVML answers an unknown error", "h200_x1", init("Unknown Error", "unknown_error", devices=False),
        "ERROR", also=("gpu_absent",), no_remedy=NOT_INSTALL),
    _no_nvml("the count answers an unknown error", "h100", count(Unreadable("NVML: Unknown Error", "unknown_error")),
        "ERROR"),
    _no_nvml("the count is 2^32 - 1", "h100", count(2**32 - 1), "ERROR"),
    _no_nvml("the count hangs", "b200", count(Unreadable("NVML: nvmlDeviceGetCount does not answer within 5 s",
        "no_answer")), "ERROR"),
    _no_nvml("no libnvidia-ml.so.1, while torch finds the GPU", "a10g",
        init("NVML Shared Library Not Found", "library_not_found"), "WARNING", check="nvml_missing"),
    _no_nvml("nvidia-ml-py is missing", "l4", init("nvidia-ml-py is not installed", "not_installed"), "WARNING",
        check="nvml_missing", remedy="pip install nvidia-ml-py"),
]  # fmt: skip
