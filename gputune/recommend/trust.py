"""Whether what a bench measured can be believed: who else used its CPUs and its GPU meanwhile, and whether heat slowed
the GPU down.

A bench of the host, or of a CPU, needs all CPUs of this process for itself: threads that share work wait for the one
whose CPU is taken. (Beside one busy loop on two CPUs, a matmul with two threads ran at a twelfth of its speed, so that
one thread looked better by far.) A bench of a GPU needs two, for the thread that launches kernels and the one of the
backward pass.

**The rule**: a choice that rests on a disturbed bench is what it would be unmeasured, and provisional. A gain of twice
and more is believed on a GPU, where the disturbance falls on both sides alike, and for a setting that says so
(`BELIEVED_FROM`), where the median is also more than a larger share of the CPUs would bring.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from gputune import benches
from gputune.checks.throttling import FAULTS
from gputune.facts import Facts
from gputune.facts.busy import is_busy
from gputune.measurement import BY_FAR, Measurement
from gputune.plugins import Setting
from gputune.settings import Choice

MANY_CPUS = 8
SHARE_MARGIN = 1.25
SM_PERCENT = 5
"""The share of a GPU that another process may use."""


def disturbance(facts: Facts, measurements: Sequence[Measurement], bench: str) -> str | None:
    """In words, what disturbed a bench; None where nothing is known to have."""
    rows = [row for row in measurements if row.bench == bench]
    on_gpu = any(row.device.startswith("cuda") for row in rows) and not _of_the_host(bench)

    def most(condition: str) -> float:
        return max((row.conditions[condition] for row in rows if condition in row.conditions), default=0.0)

    if is_busy(facts.cpu, most("other_cpus"), on_gpu=on_gpu):
        stolen = f", {most('stolen_cpus'):.2g} of them on other guests of the host" if most("stolen_cpus") else ""
        return f"others used {most('other_cpus'):.2g} of {facts.cpu.affinity_count} CPUs{stolen}"
    if not on_gpu:
        return None
    if most("other_sm_percent") >= SM_PERCENT:
        return f"another process used {most('other_sm_percent'):.0f} % of the GPU"
    bits = [int(row.conditions.get("throttle_reasons", 0)) for row in rows]
    faults = [name for bit, (name, _) in FAULTS.items() if any(bit & one for one in bits)]
    return f"the GPU was slowed down by {', '.join(faults)}" if faults else None


def _of_the_host(bench: str) -> bool:
    return bench in benches.names() and benches.traits(benches.load(bench)).of_the_host


def believed(facts: Facts, measurements: Sequence[Measurement], setting: Setting, choice: Choice) -> Choice:
    """The choice, or the one without any measurement, and provisional, where it rests on a disturbed bench."""
    if choice.interval is None:  # decided by something else than speed, which others' work does not change
        return choice
    causes = ((bench, disturbance(facts, measurements, bench)) for bench in choice.evidence)
    bench, why = next(((bench, why) for bench, why in causes if why), ("", None))
    if (
        why is None
        or choice.provisional
        or choice.unmeasured
        or _lies_far_apart(facts, measurements, setting, choice, bench)
    ):
        return choice
    reason = f"not trusted, since {why} while {bench} measured: {choice.reason}"
    return replace(choice, value=setting.recommend(facts, ()).value, reason=reason, provisional=True)


def _lies_far_apart(
    facts: Facts, measurements: Sequence[Measurement], setting: Setting, choice: Choice, bench: str
) -> bool:
    on_gpu = any(row.bench == bench and row.device.startswith("cuda") for row in measurements)
    believed_from = BY_FAR if on_gpu and not _of_the_host(bench) else getattr(setting, "BELIEVED_FROM", None)
    if believed_from is None or choice.interval is None or not choice.gain:
        return False
    low, high = choice.interval
    if believed_from > low and high > 1 / believed_from:
        return False
    explained = _by_a_larger_share(facts, measurements, bench, believed_from) if _of_the_host(bench) else 0.0
    return max(choice.gain, 1 / choice.gain) >= explained


def _by_a_larger_share(facts: Facts, measurements: Sequence[Measurement], bench: str, believed_from: float) -> float:
    """The gain that a larger share of the CPUs may bring: who has more processes gets more of what is contested, and
    who has one computes with fewer threads than the idle machine would give it.

    On few CPUs threads speed up one process as much as processes do, and the share comes on top.
    """
    seen = [row.conditions.get("other_cpus", 0.0) for row in measurements if row.bench == bench]
    left = max(0.0, 1 - max(seen, default=0.0) / facts.cpu.affinity_count)
    if not left:
        return math.inf
    return (SHARE_MARGIN if facts.cpu.budget >= MANY_CPUS else believed_from) / left
