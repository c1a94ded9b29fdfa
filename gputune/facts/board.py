"""The board, if it is one of NVIDIA's with an integrated GPU (Jetson), which is not on the PCI bus."""

import re

from gputune.host import Host

_FAMILIES = re.compile(r"Jetson|Orin|Xavier|Thor\b|Tegra")
_SIGNS = ("/etc/nv_tegra_release", "/dev/nvhost-gpu", "/dev/nvmap")
"""What only NVIDIA's Linux for these boards has: its release, and the device files of the integrated GPU's driver."""
NAMELESS = "this Jetson board"


def read(host: Host) -> str | None:
    """The board's model as its firmware names it (`NVIDIA Jetson AGX Orin Developer Kit`); None for other machines."""
    model = host.read_or_empty("/proc/device-tree/model").strip("\0 \n")
    if _FAMILIES.search(model):
        return model
    return (model or NAMELESS) if any(host.exists(sign) for sign in _SIGNS) else None
