"""Faults that the kernel's log tells of: Xid by NVIDIA's catalogue, and what is no Xid.

Severity follows the catalogue's immediate action: what asks for a reset, a restart of the machine, its mechanics or its
fabric is an ERROR until it is mended; what a restarted program mends is a WARNING; what says IGNORE is neither.
"""

from functools import partial
from typing import Any

from faults.changes import log, short
from faults.fault import Fault
from faults.fault import fault as expecting_one
from faults.faults_gpu import LAST
from faults.kinds import NO_CALL, recovery
from faults.machines import PLANS, Machine

CATALOGUE = "NVIDIA, Xid catalogue, {}: {}"
TEXTS = {
    8: "pid=77, name=python, Channel 00000008",
    11: "pid=77, name=python, Ch 00000010",
    13: "pid=77, name=python, Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address",
    31: "pid=77, name=python, Ch 00000010, MMU Fault: ENGINE GRAPHICS faulted @ 0x7f_00000000",
    45: "pid=77, name=python, Ch 00000010",
    46: "pid=77, name=python, GPU stopped processing",
    48: "pid=77, name=python, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer",
    54: "pid=77, name=python, Auxiliary power is not connected to the GPU board",
    62: "pid=77, name=python, 0aa2(3f60) 00000000 00000000",
    64: "pid=77, name=python, Row Remapper: Failed to write",
    69: "pid=77, name=python, Class Error: ChId 0010, Class 0000cbc0",
    74: "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0)",
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    94: "pid=77, name=python, Contained: SM (0x1). RST: No, D-RST: No",
    95: "pid=77, name=python, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    109: "pid=77, name=python, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x4",
    110: "pid=77, name=python, Security Fault",
    119: "pid=77, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76",
    120: "pid=77, name=python, GSP task timeout @ pc:0x49f5f4, task: 1",
    136: "Link training failed on link 5",
    140: "pid='<unknown>', name=<unknown>, An uncorrectable ECC error detected (possible firmware handling failure)",
    143: "GPU Initialization Error",
    145: "RLW_SRC_TRACK Fatal XC0 i0 Link 03 (0x00000004 0x00000080 0x00000000 0x00000000 0x00000000 0x00000000)",
    149: "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
    151: "Key rotation Error",
    155: "NVLINK: SW Defined Error",
    156: "Resource Retirement Event",
    158: "GPU Fatal Timeout",
}
RESTART = {
    46: ("h100", "RESET_GPU"), 48: ("v100", "WORKFLOW_XID_48: RESET_GPU"), 54: ("rtx4090", "CHECK_MECHANICALS"),
    62: ("a100_sxm", "RESET_GPU"), 64: ("h100", "RESET_GPU"), 74: ("a100_sxm", "WORKFLOW_NVLINK_ERR: reset"),
    79: ("h100", "RESTART_BM"), 95: ("h100", "RESET_GPU"), 109: ("b200", "RESET_GPU"), 110: ("h100", "RESET_GPU"),
    119: ("l40s", "RESET_GPU"), 120: ("h200_x8", "RESET_GPU"), 136: ("h100", "RESET_GPU"), 140: ("h100", "RESET_GPU"),
    143: ("l4", "RESET_GPU"), 145: ("b200", "WORKFLOW_NVLINK5_ERR, Fatal"), 149: ("gb200",
        "WORKFLOW_NVLINK5_ERR, Fatal"),
    151: ("h100", "RESTART_VM"), 155: ("gb200", "RESET_GPU"), 156: ("b200", "RESET_GPU"), 158: ("b200", "RESET_GPU"),
}  # fmt: skip
PROGRAM = {
    8: ("t4", "RESTART_APP"), 11: ("h100", "RESTART_APP"), 13: ("rtx3090", "RESTART_APP"), 31: ("h100", "RESTART_APP"),
    45: ("a100_pcie", "WORKFLOW_XID_45"), 69: ("l40s", "RESTART_APP"), 94: ("h100", "RESTART_APP"),
}  # fmt: skip


fault = partial(expecting_one, subject="log")


def address_of(kind: str, index: int) -> str:
    plan = PLANS[kind]
    return "0000:00:1e.0" if plan.buses == "00" else f"0000:{plan.buses.split()[index]}:00.0"


def subjects(kind: str, index: int) -> tuple[str | None, ...]:
    """A GPU's Xid is its: by NVML's index, or by the address as the driver or the kernel writes it."""
    address = address_of(kind, index)
    return f"GPU {index}", short(address), address


def lines(kind: str, *texts: str, hours_ago: float = 1.0) -> Any:
    at = short(address_of(kind, LAST[kind]))

    def inject(made: Machine) -> None:
        log(made, *(text.format(at=at) for text in texts), hours_ago=hours_ago)

    return inject


def xid(  # noqa: PLR0917 - a row of the table
    number: int, kind: str, severity: str, action: str, hours_ago: float = 1.0, name: str = "", **remedy: str
) -> Fault:
    inject = lines(kind, f"NVRM: Xid (PCI:{{at}}): {number}, {TEXTS[number]}", hours_ago=hours_ago)
    source, touches = CATALOGUE.format(number, action), (f"xid {number}",)
    return of_xid(name or f"Xid {number}", kind, severity, source, inject, touches=touches, **remedy)


def said(name: str, kind: str, severity: str, source: str, *texts: str, **more: Any) -> Fault:
    inject = lines(kind, *texts, hours_ago=more.pop("hours_ago", 1.0))
    return of_xid(name, kind, severity, source, inject, touches=("xid",), **more)


def of_xid(name: str, kind: str, severity: str, source: str, inject: Any, **more: Any) -> Fault:
    return fault(name, kind, inject, "xid_errors", severity, subjects(kind, LAST[kind]), source, **more)


def recovering(kind: str, code: int, action: str, hours_ago: float = 1.0, by_nvml: bool = True) -> Fault:
    """Xid 154, which NVML's recovery action confirms if the driver has that field."""
    change = f"NVRM: Xid (PCI:{{at}}): 154, GPU recovery action changed from 0x0 (None) to {code:#x} ({action})"

    def inject(made: Machine) -> None:
        lines(kind, change, hours_ago=hours_ago)(made)
        made.gpus[LAST[kind]]["FieldValues:[230]"] = recovery(code) if by_nvml else NO_CALL

    name = f"Xid 154, {action}, {'as NVML says too' if by_nvml else 'of a driver without the field'}"
    source = CATALOGUE.format(154, action)
    more = {"also": ("recovery_action",), "touches": ("xid", "recovery")}
    return of_xid(f"{name}, {hours_ago:g} h ago", kind, "ERROR", source, inject, **more)


FAULTS = [
    *(xid(number, kind, "ERROR", action) for number, (kind, action) in RESTART.items()),
    *(xid(number, kind, "WARNING", action) for number, (kind, action) in PROGRAM.items()),
    xid(79, "h100", "ERROR", "RESTART_BM", hours_ago=90, name="Xid 79 four days ago, in this boot",
        remedy="reboot|power"),
    xid(119, "a100_sxm", "ERROR", "RESET_GPU", hours_ago=50, name="Xid 119 two days ago, in this boot"),
    xid(64, "l40s", "ERROR", "RESET_GPU", hours_ago=190, name="Xid 64 a week ago, in this boot"),
    said("Xid 79 in the older form, without PCI:", "k80", "ERROR",
        "NVIDIA, XID Errors, vR384: NVRM: Xid (0000:03:00): 14", "NVRM: Xid ({at}): 79, GPU has fallen off the bus."),
    said("Xid 48 in the older form, with a timestamp of dmesg", "p100", "ERROR", "NVIDIA, XID Errors, vR384",
        "NVRM: Xid ({at}): 48, An uncorrectable double bit error (DBE) has been detected on GPU"),
    *(recovering(kind, code, action) for action, code, kind in (("GPU Reset Required", 1, "h100"),
        ("Node Reboot Required", 2, "b200"), ("Drain and Reset", 4, "h200_x8"), ("OS Reboot", 2, "rtx4090"))),
    recovering("gh200", 1, "GPU Reset Required", hours_ago=70),
    recovering("l40s", 1, "GPU Reset Required", by_nvml=False),
    recovering("a100_sxm", 2, "Node Reboot Required", by_nvml=False),
    said("an Xid of no known number", "h100", "WARNING", "NVIDIA, Xid catalogue: CONTACT_SUPPORT",
        "NVRM: Xid (PCI:{at}): 399, pid=77, name=python"),
]  # fmt: skip

KERNEL = "kernel_log"
SWITCH = ("0000:c1:00.0", "0000:c1:00", "nvidia-nvswitch3", "NVSwitch 3", None)


def kernel(
    name: str, kind: str, severity: str, source: str, subject: tuple[str | None, ...], *texts: str, **more: Any
) -> Fault:
    return fault(name, kind, lines(kind, *texts), KERNEL, severity, subject, source, touches=("kernel",), **more)


FAULTS += [
    kernel("a fatal SXid of an NVSwitch", "h100", "ERROR", "Fabric Manager User Guide, fatal NVSwitch SXid errors",
        SWITCH, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 24 LTSSM Fault Up"),
    kernel("a fatal SXid of an NVSwitch", "a100_sxm", "ERROR", "Fabric Manager User Guide, fatal NVSwitch SXid errors",
        SWITCH, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 24 sourcetrack timeout error (First)"),
    kernel("an adapter that could not be initialised", "l40s", "ERROR",
        "NVIDIA, GPU Debug Guidelines: RmInitAdapter failed", subjects("l40s", 3),
        "NVRM: GPU {at}.0: RmInitAdapter failed! (0x62:0x40:1941)",
        "NVRM: GPU {at}.0: rm_init_adapter failed, device minor number 3"),
    kernel("an adapter that could not be initialised", "rtx3090", "ERROR",
        "NVIDIA, GPU Debug Guidelines: RmInitAdapter failed", subjects("rtx3090", 1),
        "NVRM: GPU {at}.0: RmInitAdapter failed! (0x24:0x72:1220)"),
    kernel("fatal PCIe errors of the GPU", "h100", "ERROR",
        "Linux, PCI Express Advanced Error Reporting: fatal", subjects("h100", 5),
        "nvidia {at}.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"),
    kernel("uncorrected PCIe errors of the GPU", "rtx4090", "ERROR",
        "Linux, PCI Express Advanced Error Reporting: non-fatal", subjects("rtx4090", 0),
        "nvidia {at}.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)"),
    kernel("a machine check", "h100", "ERROR", "Linux, x86 machine checks",
        (None, "CPU", "CPU 3", "machine check"),
        "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: be00000000800400",
        "mce: [Hardware Error]: PROCESSOR 0:806f8 TIME 1764000000 SOCKET 0 APIC 6 microcode 2b000603"),
    kernel("a machine check", "a10g", "ERROR", "Linux, x86 machine checks",
        (None, "CPU", "CPU 1", "machine check"),
        "mce: [Hardware Error]: CPU 1: Machine Check Exception: 5 Bank 1: be00000000100134"),
]  # fmt: skip
