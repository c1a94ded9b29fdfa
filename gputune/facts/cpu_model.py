"""The name of the processor."""

import re

from gputune.host import Host


def model(host: Host) -> str:
    """The processor's name; the machine's architecture if the kernel gives no name, as on Arm."""
    text = host.read("/proc/cpuinfo")
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else host.machine()
