"""Has the kernel logged errors of NVSwitches, PCIe links, CPUs or memory, or of a GPU that does not start?

The driver's Xid errors have a check of their own. Beside them the kernel's log tells of a GPU that the driver could not
start (RmInitAdapter) or that fell off the bus, of NVSwitch errors (SXid), of PCIe errors of a GPU or of a bridge above
it (AER), and of errors of the host's CPUs and memory (machine checks, EDAC). What the hardware did not correct loses
data, ends programs or takes a GPU away, and it usually comes back until a part is replaced. Corrected errors cost
nothing but are a sign of a bad slot, cable or module when there are many. `sudo dmesg` shows the lines.

Source: NVIDIA, Fabric Manager User Guide, NVSwitch SXid Errors; Linux, PCI Express Advanced Error Reporting, RAS.
"""

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, counted, error, no_gpu, not_applicable, ok, unknown, warning
from gputune.checks._gpus import promise
from gputune.checks._questions import another_jobs, gap, has_gpu, nvidia_files
from gputune.checks._remedies import on_host, reset_all
from gputune.checks.gpu_lost import is_host
from gputune.facts import Facts, Gpu
from gputune.facts.kernel_messages import KernelError
from gputune.facts.pci import same

HARMLESS = {
    11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065, 19068, 19071,
    20001, 22013, 24001, 24002, 24003,
}  # fmt: skip
"""SXids after which nothing has to be done: corrected single bits, packets sent again, a link that was set up."""
MANY = 100
"""So many corrected errors are no accident; a sound link or memory module has a handful in a month."""
WORDS = "NVRM|SXid|AER|PCIe Bus Error|Hardware Error|EDAC"
WHAT = {
    "start_failed": "the driver could not start the GPU",
    "off_the_bus": "the GPU fell off the bus",
    "pcie": "PCIe error",
    "machine_check": "machine check, an error of a CPU or of memory",
    "memory": "error of the host's memory",
}
SUMMARY = on_host("sudo ras-mc-ctl --summary", note="replace the CPU or module it names")


def check(facts: Facts, measurements: Measurements) -> Findings:
    fell = {xid.address for xid in facts.driver.xids or () if xid.number == 79}
    errors = [
        one
        for one in facts.driver.kernel_errors or ()
        if one.kind != "off_the_bus" or (one.where or "").partition(".")[0] not in fell
    ]
    if unread := not_read(facts, WORDS):
        yield unread
    elif not errors:
        yield ok("the kernel's log has no other error of a GPU, an NVSwitch, a PCIe link, a CPU or memory")
    for one in errors:
        yield _judge(facts, one)


def _judge(facts: Facts, one: KernelError) -> Finding:
    what = f"NVSwitch error SXid {one.number}" if one.kind == "nvswitch" else WHAT[one.kind]
    message = f"{what}: {counted(one.count, 'time')} since boot at {one.where or 'a place that it does not name'}"
    message += f", {one.grade}" if one.kind not in ("off_the_bus", "start_failed") else ""
    if one.mended:
        return ok(f"{message}; the driver has been loaded anew since", one.where)
    if _of_anothers(facts, one):
        return not_applicable(f"{message}, which this container or job was not given", one.where)
    if one.number in HARMLESS or (one.grade == "corrected" and one.count < MANY):
        return ok(f"{message}: it requires no action", one.where)
    if one.grade in ("fatal", "uncorrected"):
        return error(message, _remedy(one), one.where)
    return warning(message, SUMMARY if one.kind in ("machine_check", "memory") else look(WORDS, _care(one)), one.where)


def _of_anothers(facts: Facts, one: KernelError) -> bool:
    gpus = (one.where,) if one.kind in ("start_failed", "off_the_bus") and one.where else one.gpus
    return bool(gpus) and all(anothers(facts, gpu) for gpu in gpus)


def _care(one: KernelError) -> str:
    if one.kind == "pcie":
        return "seat the card and its cables or riser anew; replace them if it goes on"
    return "restart the programs that use NVLink; reset all GPUs together if NCCL or CUDA hang"


def _remedy(one: KernelError) -> str:
    if one.kind == "nvswitch":
        return reset_all(note="if it comes back: sudo reboot; then replace the NVSwitch board")
    if one.kind == "pcie":
        return reboot("seat the card and its cables or riser anew; replace the card if it comes back")
    if one.kind in ("machine_check", "memory"):
        return SUMMARY
    reason = "the lines before it in the log say why: a driver that does not fit, power, or the card"
    return reboot(f"{reason}; replace the card if it comes back")


def look(words: str, note: str = "") -> str:
    """How to see the lines with one of these words, which usually only root on the host may."""
    return on_host(f"sudo dmesg --ctime | grep -E '{words}'", note=note)


def reboot(note: str) -> str:
    return on_host("sudo systemctl reboot", ends_jobs=True, changes_node=True, note=f"first drain it; {note}")


def not_read(facts: Facts, words: str) -> Finding | None:
    """The finding if the kernel's log was not read, or if there is no GPU for it to tell of; else None."""
    why = gap(facts, "driver.xids")
    if not has_gpu(facts):
        return no_gpu(facts)
    if "/dev/dxg" in facts.container.gpu_device_files:
        return not_applicable("in WSL the driver logs in Windows")
    if why and why.cause == "no_such_file" and facts.container.kind:
        return not_applicable(f"this container has no kernel log: {look(words)}")
    if facts.driver.xids is None:
        reason = why.reason if why else "no driver is loaded"
        return unknown(f"the kernel's log could not be read ({reason}): {look(words)}", fact="driver.xids")
    return None


def gpu_at(facts: Facts, address: str) -> Gpu | None:
    """The GPU at a PCI address, which may lack the function's number; None if none is listed there."""
    device = address.partition(".")[0] + ".0"
    return next((gpu for gpu in facts.gpus if same(device, gpu.pci_bus_id or "")), None)


def anothers(facts: Facts, address: str) -> bool:
    """Whether the GPU at an address is another job's. If NVML does not list all that this job was given, any may be."""
    there = gpu_at(facts, address)
    if there and another_jobs(facts, there):
        return True
    listed = [gpu for gpu in facts.gpus if not gpu.is_mig_slice]
    on_bus = sum(gpu.driver == "nvidia" for gpu in facts.pci_gpus or ())
    given, promised = len(nvidia_files(facts)), promise(facts)
    whole = is_host(facts) or given >= on_bus or (promised and promised.count >= on_bus)
    located = all(gpu.pci_bus_id for gpu in listed)
    return not whole and located and given <= len(listed) and not there
