"""As many threads as CPUs if torch would start more, or the count that measured fastest."""

from gputune.advice import Choice, Comparison, Facts, Measurement, Measurements
from gputune.advice._evidence import NOT_MEASURED, choose, compared, missing, no_gain, range_text, select, unmeasured
from gputune.knobs.omp_threads import NAMES
from gputune.resources.printable import counted

BENCH = "cpu_threads"


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
    return one_per_core(cpu.affinity_count, cpu.logical_count, cpu.physical_count)


def one_per_core(affinity: int, logical: int, physical: int | None) -> int:
    """How many threads torch starts on so many CPUs of a host, whose numbers of CPUs and of cores follow."""
    return max(1, affinity * (physical or logical) // logical)


def started_with(measurements: Measurements) -> int | None:
    """The count that torch had started with when others were measured against it; None where none were."""
    default = _default(_rows(measurements))
    return int(default.params["threads"]) if default else None


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
