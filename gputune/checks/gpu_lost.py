"""Does every GPU on the PCI bus that this container or job was given answer NVML?

A GPU that fell off the bus, or that the driver could not start, is still on the PCI bus but missing from NVML and
torch; one that hangs is listed and answers its calls with an error, or not at all. The job runs on fewer GPUs, or dies.
On the host itself every GPU that NVIDIA's driver holds should be listed. A container or job that was given some of the
host's GPUs sees the others on the bus too; it may not open their device files, and they are not counted as lost. The
kernel log has the driver's reason. Drain the node; then a reset, a reboot or a power cycle may bring the card back, and
one that is lost again has to be replaced.

Source: Linux, /sys/bus/pci; NVML, nvmlReturn_t; NVIDIA, GPU Debug Guidelines.
"""

from dataclasses import replace

from gputune.checks._answers import Finding, Findings, Measurements, error, not_applicable, ok, unknown, unread, warning
from gputune.checks._gpus import address, not_asked, of_this_job, silence, unlisted
from gputune.checks._questions import gap, nvidia_files
from gputune.checks._remedies import on_host, reset
from gputune.facts import Facts, Gap, Gpu

NONE = "NVIDIA's driver is bound to no GPU on the PCI bus"
LOOK = "sudo dmesg | grep NVRM"
BRING_BACK = on_host(
    f"{LOOK} | tee nvrm.log; sudo reboot",
    ends_jobs=True,
    note="drain it first; if the GPU stays away, power it off and on; replace a card that is lost again",
)
CABLES = "power the host off, and connect all power cables of the card"
BIND = on_host(LOOK, note="the driver may not support it any more, or someone unbound it")


def check(facts: Facts, measurements: Measurements) -> Findings:
    listed = of_this_job(facts)
    silent = {gpu.index: why for gpu in listed if (why := silence(facts, gpu))}
    for gpu in listed:
        if gpu.index in silent:
            yield _silent(facts, gpu, silent[gpu.index])
        elif why := not_asked(facts, gpu):
            yield unknown(f"whether it answers is not known ({why.reason})", f"GPU {gpu.index}", why.fact)
    whole = _finding(facts, listed)
    if not silent or whole.severity == "ERROR":
        yield whole


def _silent(facts: Facts, gpu: Gpu, why: Gap) -> Finding:
    where, left = address(facts, gpu), unlisted(facts)
    somewhere = f"one of {', '.join(left)}" if left else "its bus address is not known"
    message = f"it no longer answers ({why.reason}): {where or somewhere}"
    resettable = where and why.cause in ("needs_reset", "timeout", "unknown_error")
    note = f"{LOOK} shows why; if it fails: sudo reboot; replace a card that needs it again"
    if why.cause == "no_power":
        return error(message, CABLES, f"GPU {gpu.index}", why.fact)
    remedy = reset(replace(gpu, pci_bus_id=gpu.pci_bus_id or where), note=note) if resettable else BRING_BACK
    return error(message, remedy, f"GPU {gpu.index}", why.fact)


def _finding(facts: Facts, listed: tuple[Gpu, ...]) -> Finding:
    if facts.pci_gpus is None:
        return unread(facts, "pci_gpus", "the PCI bus")
    ours = [gpu.address for gpu in facts.pci_gpus if gpu.driver == "nvidia"]
    idle = [gpu.address for gpu in facts.pci_gpus if gpu.driver is None]
    if missing := unlisted(facts):
        return _missing(facts, missing, listed, len(ours))
    if idle and facts.gpus and not facts.container.kind:
        return warning(f"on the PCI bus, but held by no driver: {', '.join(idle)}", BIND, idle[0])
    return ok(f"NVML lists every NVIDIA GPU of the PCI bus ({len(ours)})") if ours else not_applicable(NONE)


def _missing(facts: Facts, missing: list[str], listed: tuple[Gpu, ...], on_bus: int) -> Finding:
    # This container or job was given the GPUs whose device files it may open.
    where, given = ", ".join(missing), len(nvidia_files(facts))
    if not facts.driver.nvml or gap(facts, "gpu.count"):
        return unknown(f"on the PCI bus: {where}; NVML, which could list it, does not answer")
    if len(missing) <= sum(gpu.pci_bus_id is None for gpu in listed):
        return unknown(f"on the PCI bus: {where}; as many GPUs are listed without an address to compare")
    if given <= len(listed) and not is_host(facts):
        return not_applicable(f"this container or job was given {given} of the {on_bus} GPUs on the PCI bus")
    if 0 < given - len(listed) < len(missing):
        return error(f"on the PCI bus, but not listed by NVML: {given - len(listed)} of {where}", BRING_BACK)
    return error(f"on the PCI bus, but not listed by NVML: {where}", BRING_BACK, missing[0])


def misses_one(facts: Facts) -> bool:
    """This check complains of a GPU that is on the bus and not listed."""
    return _finding(facts, of_this_job(facts)).severity == "ERROR"


def is_host(facts: Facts) -> bool:
    """Nothing shows that this process was given only some of the machine's GPUs."""
    shared = facts.container.kind or facts.scheduler.name or facts.container.forbidden_device_files
    return not shared and "NVIDIA_VISIBLE_DEVICES" not in facts.environment
