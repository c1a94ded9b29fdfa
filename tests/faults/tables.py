"""The whole table: all faults, the healthy variants, and which faults can be in one machine together."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from faults import faults_counts, faults_gpu, faults_host, faults_log, faults_more, faults_torch
from faults.fault import Fault, Verdict, judge
from faults.healthy import HEALTHY
from faults.machines import Machine, machine


def _asks_for_more(fault: Fault) -> bool:
    """It needs what was not recorded, the neighbours' newer traits, or is none where all are H200."""
    return any(word in fault.name for word in ("VBIOS", "GSP firmware", "of another kind"))


FAULTS: list[Fault] = [
    *faults_gpu.FAULTS, *faults_log.FAULTS, *faults_counts.FAULTS, *faults_torch.FAULTS, *faults_host.FAULTS,
    *faults_more.FAULTS,
]  # fmt: skip
AS_RECORDED = [
    replace(fault, kind=recorded)
    for kind, recorded in (("h100", "recorded_x8"), ("h200_x1", "recorded_x1"))
    for fault in FAULTS
    if fault.kind == kind and fault.subject in ("GPU", "torch") and not _asks_for_more(fault)
]
"""The same on machines as they were recorded, where the newer calls and files are missing."""
KINDS = {fault.kind for fault in FAULTS} | {one.kind for one in HEALTHY}
ALL = "*"
"""What a fault touches that changes so much of the machine that no other goes with it."""
GPUS = "*gpu"
"""What a fault touches that leaves nothing of NVML's answers about a GPU; the log and the host are as they were."""


def together(one: Fault, other: Fault) -> bool:
    """Whether one machine can have both, so that each is still what it is alone."""
    if one.kind != other.kind or ALL in (*one.touches, *other.touches) or set(one.touches) & set(other.touches):
        return False
    return not _hides(one, other) and not _hides(other, one)


def _hides(one: Fault, other: Fault) -> bool:
    """Whether the first leaves nothing to see of the second."""
    touches, calls = set(one.touches), " ".join(other.touches)
    if GPUS in touches:  # a log or a host stay as they are; what a driver said under a load does not
        return other.subject not in ("log", "host") or bool({"load", "recovery", "listed"} & set(other.touches))
    hidden = {
        "visible": "load" in calls or "name" in calls or other.expected[0].check in ASKS_ABOUT_VISIBLE,
        "name": "NvLink" in calls,  # it is compared with GPUs of its name
        "MigMode": "NvLink" in calls or "alike" in calls,  # slices have no links, and are compared with no whole GPU
        "ecc": "memory" in calls,  # ECC takes some memory
    }
    return any(hidden[what] for what in touches & set(hidden))


ASKS_ABOUT_VISIBLE = ("compute_mode", "gpu_in_use", "numa")
"""Checks that ask only about the GPUs that torch sees."""


def pairs() -> list[tuple[Fault, Fault]]:
    by_kind: dict[str, list[Fault]] = {}
    for fault in FAULTS:
        by_kind.setdefault(fault.kind, []).append(fault)
    return [pair for faults in by_kind.values() for pair in combinations(faults, 2) if together(*pair)]


def sample(count: int, seed: int = 21) -> list[tuple[Fault, Fault]]:
    found = pairs()
    return random.Random(seed).sample(found, min(count, len(found)))


def with_both(one: Fault, other: Fault) -> Machine:
    made = machine(one.kind)
    one.inject(made)
    other.inject(made)
    return made


def verdicts() -> Iterator[tuple[Fault, Verdict]]:
    for fault in FAULTS:
        yield fault, judge((fault,), fault.machine().findings())
