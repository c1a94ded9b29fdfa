"""What is this machine? One subject a file, each with its dataclass and its reader; `read` asks them all.

What could not be read is a `Gap`, never a zero and never a crash. The names here are loaded when they are used: `gputune apply`
needs three of the subjects, and starts before every program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gputune.facts.machine import (
        Container,
        Cpu,
        Driver,
        Facts,
        Flags,
        Folder,
        Gap,
        Gpu,
        Health,
        Libraries,
        Memory,
        PciGpu,
        Precision,
        Process,
        Scheduler,
        read,
    )

__all__ = [
    "Container", "Cpu", "Driver", "Facts", "Flags", "Folder", "Gap", "Gpu", "Health", "Libraries", "Memory", "PciGpu", "Precision",
    "Process", "Scheduler", "read",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gputune.facts import machine

    return getattr(machine, name)
