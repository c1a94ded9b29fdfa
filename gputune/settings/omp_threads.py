"""OpenMP threads of one process on the CPU (OMP_NUM_THREADS); none leaves it to torch, which counts the CPUs of the affinity.

Inside a CPU quota torch starts as many threads as the affinity allows; they then share less time than they expect, wait
for each other at every barrier and are throttled together. torchrun exports 1 when nothing is set.

Source: PyTorch, "CPU threading and TorchScript inference"; the kernel's CFS bandwidth control.
"""

from __future__ import annotations

import os
from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import NOT_MEASURED, change, counted, keep, lacking, no_gain, range_text, select

VALUE = int | None
PHASE: Phase = "launch"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu", "cpu_budget")
LIMITS = (1, 4096)


def recommend(facts: Any, measurements: Any) -> Choice:
    rows = select(measurements, "cpu_threads", "throughput")
    default = next((row for row in rows if row.params.get("default")), None)
    if default is None:
        return keep(None, NOT_MEASURED)
    others = [(row, row.against(default)) for row in rows if row is not default]
    known = [(row, comparison) for row, comparison in others if comparison]
    if not others:
        return keep(
            None, f"the process's own {default.params['threads']} is the only count to try here", ["cpu_threads"]
        )
    if not known:
        return keep(None, lacking(default, others))
    row, comparison = max(known, key=lambda pair: pair[1].ratio)
    threads = counted(row.params["threads"], "thread")
    what = f"CPU matmul with {threads} ran {range_text(comparison)} as fast as with {default.params['threads']}"
    if comparison.verdict == "gain":
        return change(int(row.params["threads"]), comparison, what, ["cpu_threads"])
    return keep(None, f"{no_gain(comparison)}: {what}, its own choice", ["cpu_threads"], comparison)


def environ(value: int | None) -> dict[str, str]:
    return {} if value is None else {"OMP_NUM_THREADS": str(value)}


def apply(value: int) -> None:
    """In a process that runs already, where the variable comes too late."""
    import torch

    torch.set_num_threads(value)


def current() -> int:
    import torch

    return int(torch.get_num_threads())


def default() -> int | None:
    """The count that torch starts with: the CPUs of the affinity, or one for each core where those have two. None for any other count,
    which somebody must have set.
    """
    cpus = len(os.sched_getaffinity(0))
    return current() if current() in {cpus, max(2, cpus // 2)} else None
