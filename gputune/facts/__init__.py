"""Facts about the machine: one file per subject, with its dataclass and its reader; `read` reads all of them.

What could not be read is a `Gap`, never a zero and never a crash. The names below are imported on first use, because
`gputune apply` runs before every program and needs only three of the subjects.
"""

# ruff: noqa: F403, F405 - a type checker takes the names from `machine`, and at run time they are imported on first use
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gputune.facts.machine import *

__all__ = [
    "Container", "Cpu", "Driver", "Facts", "Flags", "Folder", "Gap", "Gpu", "Health", "Libraries", "Memory", "PciGpu",
    "Precision", "Process", "Scheduler", "read",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gputune.facts import machine

    return getattr(machine, name)
