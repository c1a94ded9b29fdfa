"""Has the kernel stopped this process's group for using up its CPU quota?

With more running threads than the quota allows, the group uses up each period's share (usually of 0.1 s) early and
stands still for the rest of it, including the thread that feeds the GPU. Use fewer threads and workers, or more CPUs.

Source: Linux, CFS Bandwidth Control, cpu.stat.
"""

from gputune.checks._answers import Facts, Findings, Measurements, not_applicable, ok, unread, warning
from gputune.checks._questions import reason
from gputune.checks._remedies import bare, more, typed

MOMENTARY = True
MOST, LEAST_PERIODS = 0.01, 5


def check(facts: Facts, measurements: Measurements) -> Findings:
    cpu, stopped, periods = facts.cpu, facts.cpu.throttled_periods, facts.cpu.quota_periods
    if cpu.quota is None and not reason(facts, "cpu.quota"):
        yield not_applicable("there is no CPU quota")
    elif stopped is None or periods is None:
        fact = "cpu.quota" if cpu.quota is None else "cpu.throttled_periods"
        yield unread(facts, fact, "how often the group was stopped")
    else:
        message = f"stopped in {stopped} of {periods} periods, having used up its quota of {cpu.quota:g} CPUs"
        if stopped >= LEAST_PERIODS and stopped > MOST * periods:
            note = f"and use fewer DataLoader workers; or {bare(more(facts, 'cpu', cpu.quota_source))}"
            yield warning(message, typed(f"export OMP_NUM_THREADS={cpu.budget}", note=note), cpu.quota_source)
        else:
            yield ok(message)
