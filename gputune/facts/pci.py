"""NVIDIA GPUs on the PCI bus, as the kernel lists them, whether or not a driver or NVML knows them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable

_BUS = "/sys/bus/pci/devices"
_NVIDIA = "10DE:"
_DISPLAY = 0x03  # PCI's base class of display controllers, which GPUs without a display are in too


@dataclass(frozen=True, slots=True, kw_only=True)
class PciGpu:
    address: str
    """domain:bus:device.function, as `0000:3b:00.0`."""
    driver: str | None
    """The kernel driver that holds it: nvidia, nouveau, vfio-pci (given to a virtual machine); None for none."""


def read(host: Host, gaps: Gaps) -> tuple[PciGpu, ...] | None:
    """None, with a gap, where the bus cannot be seen."""
    return gaps.read("pci_gpus", lambda: _gpus(host))


def _gpus(host: Host) -> tuple[PciGpu, ...]:
    addresses = host.names(_BUS)
    if not addresses:
        raise Unreadable(f"{_BUS} shows no PCI bus")
    # A virtual function (SR-IOV, which has a `physfn`) is for a virtual machine, and no GPU of this one's.
    found = (_gpu(host, address) for address in addresses if not host.exists(f"{_BUS}/{address}/physfn"))
    return tuple(gpu for gpu in found if gpu)


def _gpu(host: Host, address: str) -> PciGpu | None:
    pairs = (line.partition("=") for line in host.read(f"{_BUS}/{address}/uevent").splitlines())
    told = {name: value for name, _, value in pairs}
    if not told.get("PCI_ID", "").upper().startswith(_NVIDIA) or int(told.get("PCI_CLASS", "0"), 16) >> 16 != _DISPLAY:
        return None
    return PciGpu(address=address.lower(), driver=told.get("DRIVER"))


def same(address: str, nvml: str) -> bool:
    """Whether NVML's bus id (`00000000:3B:00.0`) is this address: the two write domains at different lengths."""
    one, other = (re.fullmatch(r"0*([0-9a-f]*):(\S+)", text.lower()) for text in (address, nvml))
    return bool(one and other and one.groups() == other.groups())
