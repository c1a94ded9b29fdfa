"""The whole machine, of all subjects, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from gputune.facts import (
    container,
    cpu,
    driver,
    environment,
    gpu,
    libraries,
    memory,
    pci,
    precision,
    process,
)
from gputune.facts.container import Container
from gputune.facts.cpu import Cpu
from gputune.facts.driver import Driver
from gputune.facts.gap import Gap, Gaps
from gputune.facts.gpu import Gpu
from gputune.facts.health import Health
from gputune.facts.libraries import Libraries
from gputune.facts.memory import Memory
from gputune.facts.pci import PciGpu
from gputune.facts.precision import Flags, Precision
from gputune.facts.process import Folder, Process
from gputune.host import Host, Nvml, Unreadable
from gputune.resources import scheduler
from gputune.resources.scheduler import Scheduler

__all__ = [
    "Container", "Cpu", "Driver", "Facts", "Flags", "Folder", "Gap", "Gpu", "Health", "Libraries", "Memory", "PciGpu", "Precision",
    "Process", "Scheduler", "read",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One machine, as one process on it sees it."""

    gpus: tuple[Gpu, ...]
    pci_gpus: tuple[PciGpu, ...] | None = None
    """NVIDIA's on the PCI bus, whoever uses them; None where it could not be read."""
    driver: Driver
    libraries: Libraries
    precision: Precision
    cpu: Cpu
    memory: Memory
    container: Container
    process: Process
    scheduler: Scheduler
    environment: dict[str, str] = field(default_factory=dict)
    """The set variables that torch and NVIDIA's libraries may heed, by name."""
    gpu_required: bool = False
    """The user said that there must be one."""
    gaps: tuple[Gap, ...] = ()

    def device_gpu(self, device: str) -> Gpu | None:
        """The GPU that the torch device `cuda:N` is, or None (the CPU, or a device that is not there)."""
        kind, _, index = device.partition(":")
        if kind != "cuda":
            return None
        return next((found for found in self.gpus if found.torch_index == int(index or 0)), None)


def read(host: Host, *, gpu_required: bool = False) -> Facts:
    """Read everything. torch is imported in a child process of `host.python`, never in this one."""
    gaps = Gaps()
    torch = libraries.ask_torch(host, gaps)
    nvml = _nvml(host, bool(torch.get("devices")), gaps)
    granted = scheduler.read(host)
    return Facts(
        gpus=gpu.read(nvml, torch.get("devices") or [], gaps),
        pci_gpus=pci.read(host, gaps),
        driver=driver.read(host, nvml, gaps),
        libraries=libraries.read(host, torch, gaps),
        precision=precision.read(host, torch),
        cpu=cpu.read(host, granted, gaps),
        memory=memory.read(host, gaps),
        container=container.read(host),
        process=process.read(host, gaps),
        scheduler=granted,
        environment=environment.read(host),
        gpu_required=gpu_required,
        gaps=tuple(gaps.found),
    )


def _nvml(host: Host, seen: bool, gaps: Gaps) -> Nvml | None:
    """NVML, or None. Its absence is a gap only where there is something for it to list."""
    try:
        return host.nvml()
    except Unreadable as error:
        if seen or gpu.present(host) or "mismatch" in str(error):
            gaps.add("driver.nvml", str(error))
        return None
