"""Does NVML list every GPU on the PCI bus that this container or job was given?

A GPU that fell off the bus, or that the driver could not start, is still on the PCI bus but missing from NVML and
torch: the job runs on fewer GPUs, or dies. A container or job that was given some of the host's GPUs sees the others on
the bus too; it may not open their device files, and they are not counted as lost. On the host, `dmesg | grep NVRM`
shows the driver's reason; a reboot or a power cycle may bring the card back.

Source: Linux, /sys/bus/pci; nvmlDeviceGetCount.
"""

from gputune.checks._answers import Finding, Findings, Measurements, error, not_applicable, ok, unknown, unread, warning
from gputune.checks._questions import nvidia_files
from gputune.facts import Facts
from gputune.facts.pci import same

NONE = "NVIDIA's driver is bound to no GPU on the PCI bus"
BRING_BACK = "on the host: sudo dmesg | grep NVRM; then reboot or power-cycle it; replace a card that stays lost"
BIND = "on the host: sudo dmesg | grep NVRM shows why; the driver may no longer support it, or someone unbound it"


def check(facts: Facts, measurements: Measurements) -> Findings:
    lost = [gap for gap in facts.gaps if gap.cause in ("gpu_lost", "needs_reset")]
    if not lost:
        yield _finding(facts)
    facts_lost = {(gap.fact.split(".")[1], gap.reason): gap.fact for gap in lost}
    for (index, why), fact in facts_lost.items():
        yield error(f"it no longer answers ({why})", BRING_BACK, f"GPU {index}", fact)


def _finding(facts: Facts) -> Finding:
    if facts.pci_gpus is None:
        return unread(facts, "pci_gpus", "the PCI bus")
    ours = [gpu.address for gpu in facts.pci_gpus if gpu.driver == "nvidia"]
    idle = [gpu.address for gpu in facts.pci_gpus if gpu.driver is None]
    missing = [address for address in ours if not any(same(address, gpu.pci_bus_id or "") for gpu in facts.gpus)]
    if missing:
        return _missing(facts, missing, len(ours))
    if idle and facts.gpus and not facts.container.kind:
        return warning(f"on the PCI bus, but held by no driver: {', '.join(idle)}", BIND, idle[0])
    return ok(f"NVML lists every NVIDIA GPU of the PCI bus ({len(ours)})") if ours else not_applicable(NONE)


def _missing(facts: Facts, missing: list[str], on_bus: int) -> Finding:
    # This container or job was given the GPUs whose device files it may open.
    listed, where, given = len(facts.gpus), ", ".join(missing), len(nvidia_files(facts))
    if not facts.driver.nvml:
        return unknown(f"on the PCI bus: {where}; NVML, which could list it, does not answer")
    if len(missing) <= sum(gpu.pci_bus_id is None for gpu in facts.gpus):
        return unknown(f"on the PCI bus: {where}; as many GPUs are listed without an address to compare")
    if given <= listed:
        return not_applicable(f"this container or job was given {given} of the {on_bus} GPUs on the PCI bus")
    if given - listed < len(missing):
        return error(f"on the PCI bus, but not listed by NVML: {given - listed} of {where}", BRING_BACK)
    return error(f"on the PCI bus, but not listed by NVML: {where}", BRING_BACK, missing[0])
