"""What the checks of the kernel's log have in common: whether it was read, and whose GPU an address is."""

from gputune.checks import Finding
from gputune.checks._answers import no_gpu, not_applicable, unknown
from gputune.checks._promised_gpus import promise
from gputune.checks._questions import another_jobs, gap, has_gpu, nvidia_files
from gputune.checks._remedies import typed
from gputune.checks.gpu_lost import is_host
from gputune.facts import Facts, Gpu
from gputune.facts.pci import same


def look(words: str, note: str = "") -> str:
    """How to see the lines with one of these words, which usually only root on the host may."""
    return typed(f"sudo dmesg --ctime | grep -E '{words}'", where="on the host", root=True, note=note)


def reboot(note: str) -> str:
    return typed(
        "sudo systemctl reboot", where="on the host", root=True, ends_jobs=True, changes_node=True,
        note=f"first drain it; {note}",
    )  # fmt: skip


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
    """Whether the GPU at an address is one that this container or job was not given.

    It was given the GPUs whose device files it may open. If NVML does not list all of these, any may be the one.
    """
    there = gpu_at(facts, address)
    if there and another_jobs(facts, there):
        return True
    listed = [gpu for gpu in facts.gpus if not gpu.is_mig_slice]
    on_bus = sum(gpu.driver == "nvidia" for gpu in facts.pci_gpus or ())
    given, promised = len(nvidia_files(facts)), promise(facts)
    whole = is_host(facts) or given >= on_bus or (promised and promised.count >= on_bus)
    located = all(gpu.pci_bus_id for gpu in listed)
    return not whole and located and given <= len(listed) and not there
