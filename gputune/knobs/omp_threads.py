"""OpenMP threads of one process on the CPU (OMP_NUM_THREADS); none leaves it to torch, which counts its CPUs.

Inside a CPU quota torch starts as many threads as the affinity allows; they then share less time than they expect,
wait for each other at every barrier and are throttled together. Ranks that share CPUs, and a scheduler's grant that
no affinity enforces, are not seen by torch either. MKL follows OMP_NUM_THREADS unless MKL_NUM_THREADS is set, and
then that one counts for torch too. torchrun exports OMP_NUM_THREADS=1 when nothing is set.

**The rule**: fewer threads than torch's own count look better beside other work, and hurt once the machine is idle, so
two runs apart must agree on them. Where torch would start more threads than the process has CPUs, it is given as many
as there are, also unmeasured. A quota also holds during the measurement: where that many threads certainly ran slower
in it, torch's count stays. CPUs that other ranks or jobs will use are idle while one process measures, so there no
measurement speaks for more.

Source: PyTorch, "CPU threading and TorchScript inference"; oneMKL, MKL_NUM_THREADS; the kernel's CFS bandwidth control.
"""

import os

from ..resources.printable import counted
from . import Choice, Comparison, Facts, Measurement, Measurements, Need, Numerics, Phase, Stage
from ._evidence import NOT_MEASURED, choose, compared, missing, no_gain, range_text, select, unmeasured

VALUE = int | None
PHASE: Phase = "launch"
NUMERICS: Numerics = "rounding"  # a sum that is shared out among threads is added in another order
DEPENDS = ("cpu", "cpu_budget")
STAGE: Stage = "options"
AFTER = ("fused_optimizer",)
NEEDS: tuple[Need, ...] = ("cpu",)
SPARES_HOST = True
LIMITS = (1, 4096)

BENCH = "cpu_threads"
NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Where one of these is set, the count that torch started with is the user's."""


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    rows, limits, budget = _rows(measurements), _limits(facts), facts.cpu.budget
    within = [row for row in rows if row.params.get("default") or int(row.params["threads"]) <= budget]
    choice = _measured(within, 1) if limits else _measured(rows, budget)
    if not limits or choice.value is not None:
        return choice
    default = _default(rows)
    slower = choice.interval is not None and choice.interval[1] < 1
    if _is_enforced(facts) and slower and default is not None and int(default.params["threads"]) > budget:
        return choice  # all counts within the budget certainly ran slower than torch's own, which is above it
    alone = choice.reason if choice.gain is None else "what one process measured does not speak against it"
    reason = f"{limits}: {counted(budget, 'thread')}, where torch would start {own(facts)}; {alone}"
    return choose(budget, reason)


def gain_of(facts: Facts, measurements: Measurements, value: int, family: str = "") -> Comparison | None:
    rows = _rows(measurements)
    return compared(next((row for row in rows if row.params["threads"] == value), None), _default(rows))


def _rows(measurements: Measurements) -> list[Measurement]:
    """The rows of this bench; those of a file may be of another version, and are left out where they cannot be read."""
    return [row for row in select(measurements, BENCH, "throughput") if type(row.params.get("threads")) is int]


def own(facts: Facts) -> int:
    """How many threads torch starts by itself: as measured where nobody chose, else one for each core."""
    cpu, threads = facts.cpu, facts.libraries.torch_threads
    if threads is not None and not set(NAMES) & set(facts.environment):
        return int(threads)
    cores = cpu.physical_count or cpu.logical_count
    return max(1, int(cpu.affinity_count) * int(cores) // int(cpu.logical_count))


def _limits(facts: Facts) -> str:
    """The limits that allow fewer CPUs than torch's own count of threads, in words; empty without any."""
    cpu, ranks = facts.cpu, facts.scheduler.local_ranks
    if own(facts) <= cpu.budget:
        return ""
    limits = []
    if cpu.quota is not None and cpu.quota < cpu.affinity_count:
        limits.append(f"{cpu.quota_source} allows {cpu.quota:g} CPUs")
    if cpu.grant is not None and cpu.grant < cpu.affinity_count:
        limits.append(f"the scheduler granted {counted(cpu.grant, 'CPU')}")
    if ranks > 1:
        limits.append(f"{ranks} ranks share the CPUs")
    return " and ".join(limits)


def _is_enforced(facts: Facts) -> bool:
    """Whether the only limit is a quota, which held while this process was measured."""
    grant = facts.cpu.grant
    return facts.scheduler.local_ranks == 1 and (grant is None or grant >= facts.cpu.affinity_count)


def _default(rows: Measurements) -> Measurement | None:
    return next((row for row in rows if row.params.get("default")), None)


def _measured(rows: Measurements, least: int) -> Choice:
    """The choice by the measured rows: torch's own count, or at least `least`, without a limit one for each CPU: fewer
    look faster only while others use the CPUs.
    """
    default = _default(rows)
    if default is None:
        return unmeasured(None, NOT_MEASURED)
    started_with = int(default.params["threads"])
    others = [(row, row.against(default)) for row in rows if row is not default]
    told = [(row, comparison) for row, comparison in others if comparison]
    if not others:
        return choose(None, f"the process's own {started_with} is the only count to try", None, BENCH)
    if not told:
        return unmeasured(None, missing(default, others))
    enough = [pair for pair in told if int(pair[0].params["threads"]) >= min(started_with, least)]
    row, comparison = max(enough or told, key=lambda pair: pair[1].ratio)
    threads = counted(row.params["threads"], "thread")
    what = f"CPU matmul with {threads} ran {range_text(comparison)} as fast as with {started_with}"
    if comparison.verdict != "gain":
        return choose(None, f"{no_gain(comparison)}: {what}, its own choice", comparison, BENCH)
    if not enough:
        return choose(None, f"fewer threads than CPUs are faster only beside others: {what}", comparison, BENCH)
    return choose(int(row.params["threads"]), what, comparison, BENCH)


def environ(value: int | None) -> dict[str, str]:
    """Without MKL_NUM_THREADS, which MKL prefers: it would hide an OMP_NUM_THREADS that a script sets later."""
    return {} if value is None else {"OMP_NUM_THREADS": str(value)}


def apply(value: int) -> None:
    """Set the count in a running process, where the variable comes too late."""
    import torch

    torch.set_num_threads(value)


def current() -> int:
    import torch

    return int(torch.get_num_threads())


def default() -> int | None:
    """The count that torch starts with: one for each CPU or core of the affinity. None for any other count."""
    cpus = len(os.sched_getaffinity(0))
    return current() if current() in {cpus, max(2, cpus // 2)} else None
