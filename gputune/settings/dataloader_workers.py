"""How many worker processes a DataLoader gets (`num_workers`; torch's default is 0: the training process loads itself).

Measured on two kinds of samples: ones that cost CPU time, as decoding images does, which the choice is made for, and ones that
cost next to nothing, as slices of tokens do, for which workers usually cost more than they bring. A dataset that waits for the network
may want more workers than there are CPUs.

Source: PyTorch, "torch.utils.data"; measured here.
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import NOT_MEASURED, change, compared, counted, keep, lacking, no_gain, one, range_text, select

VALUE = int
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu", "cpu_budget")
LIMITS = (0, 1024)

NEARLY_BEST = 1.03
"""The fewest workers within this ratio of the best: each costs memory and a process."""


def recommend(facts: Any, measurements: Any) -> Choice:
    rows = select(measurements, "dataloader", "throughput", kind="decode")
    none = next((row for row in rows if row.params["workers"] == 0), None)
    if none is None or len(rows) < 2:
        return keep(0, NOT_MEASURED)
    best = fewest(rows)
    if best is none:
        best = max((row for row in rows if row is not none), key=lambda row: row.median)
    comparison = compared(best, none)
    if comparison is None:
        return keep(0, lacking(best, none))
    count = int(best.params["workers"])
    what = (
        f"samples that cost CPU time came {range_text(comparison)} as fast with {counted(count, 'worker')} as with none"
    )
    if comparison.verdict == "gain":
        return change(count, comparison, what + _cheap(measurements, count), ["dataloader"])
    return keep(0, f"{no_gain(comparison)}: {what}", ["dataloader"], comparison)


def fewest(rows: Any) -> Any:
    """The row with the fewest workers whose median throughput is within `NEARLY_BEST` of the best row's."""
    best = max(row.median for row in rows)
    return min((row for row in rows if row.median * NEARLY_BEST >= best), key=lambda row: row.params["workers"])


def _cheap(measurements: Any, count: int) -> str:
    """What the same workers do to samples that cost next to nothing."""
    loss = compared(
        one(measurements, "dataloader", "throughput", kind="cheap", workers=count),
        one(measurements, "dataloader", "throughput", kind="cheap", workers=0),
    )
    if loss is None:
        return ""
    if loss.high < 1:
        return f"; samples that cost nothing came only {range_text(loss)} as fast: use 0 for those"
    return f"; samples that cost nothing {range_text(loss)}"
