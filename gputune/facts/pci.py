"""NVIDIA's GPUs on the PCI bus, as the kernel lists them, whether or not a driver holds them or NVML lists them."""

import re
from dataclasses import dataclass

from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable

_BUS = "/sys/bus/pci/devices"
_NVIDIA = "10DE:"
_DISPLAY = 0x03  # PCI's base class of display controllers, to which GPUs without a display belong too


@dataclass(frozen=True, slots=True, kw_only=True)
class PciGpu:
    address: str
    """domain:bus:device.function, as `0000:3b:00.0`."""
    driver: str | None
    """The kernel driver that holds it: nvidia, nouveau, vfio-pci (assigned to a virtual machine), ... or None."""


def read(host: Host, gaps: Gaps) -> tuple[PciGpu, ...] | None:
    return gaps.read("pci_gpus", lambda: _gpus(host))


def _gpus(host: Host) -> tuple[PciGpu, ...]:
    addresses = host.names(_BUS)
    if not addresses:
        raise Unreadable(f"{_BUS} shows no PCI bus")
    # An SR-IOV virtual function (it has a `physfn`) is meant for a virtual machine, not for this system.
    gpus = (_gpu(host, address) for address in addresses if not host.exists(f"{_BUS}/{address}/physfn"))
    return tuple(gpu for gpu in gpus if gpu)


def _gpu(host: Host, address: str) -> PciGpu | None:
    pairs = (line.partition("=") for line in host.read(f"{_BUS}/{address}/uevent").splitlines())
    entry = {name: value for name, _, value in pairs}
    nvidia = entry.get("PCI_ID", "").upper().startswith(_NVIDIA)
    if nvidia and int(entry.get("PCI_CLASS", "0"), 16) >> 16 == _DISPLAY:
        return PciGpu(address=address.lower(), driver=entry.get("DRIVER"))
    return None


def paths(host: Host) -> dict[str, str]:
    """For each of NVIDIA's GPUs on the bus its path in /sys, which has the addresses of all bridges above it."""
    return {gpu.address: host.real(f"{_BUS}/{gpu.address}") for gpu in read(host, Gaps()) or ()}


def gpus_at(paths: dict[str, str], address: str) -> tuple[str, ...]:
    """The GPUs at this PCI address, whatever its function, or behind this bridge."""
    device = address.rpartition(".")[0] + "."
    return tuple(gpu for gpu, path in paths.items() if gpu.startswith(device) or f"/{address}/" in path)


def same(address: str, nvml: str) -> bool:
    """Whether NVML's bus id (`00000000:3B:00.0`) means the kernel's `address`, which has a shorter domain number."""
    one, other = (re.fullmatch(r"0*([0-9a-f]*):(\S+)", text.lower()) for text in (address, nvml))
    return bool(one and other and one.groups() == other.groups())
