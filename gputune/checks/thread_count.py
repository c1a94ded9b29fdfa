"""Do torch's threads have a CPU each?

torch starts as many threads as MKL_NUM_THREADS or OMP_NUM_THREADS say, or one for each CPU of the affinity, in every
rank. More threads than CPUs wait for each other at every barrier.

Source: torch.get_num_threads; OpenMP, OMP_NUM_THREADS.
"""

from gputune.checks._answers import counted, ok, unread, warning
from gputune.checks._common import Facts, Findings, Measurements
from gputune.resources.cpus import budget


def check(facts: Facts, measurements: Measurements) -> Findings:
    threads, ranks, cpus = facts.libraries.torch_threads, facts.scheduler.local_ranks, facts.cpu.affinity_count
    share = budget(cpus, None, facts.cpu.grant, ranks)
    if threads is None:
        yield unread(facts, "libraries.threads", "torch's threads")
    elif threads > share:
        each = f"{counted(threads, 'thread')} in each of {ranks} ranks" if ranks > 1 else counted(threads, "thread")
        unset = "unset MKL_NUM_THREADS; " if "MKL_NUM_THREADS" in facts.environment else ""
        remedy = f"{unset}export OMP_NUM_THREADS={min(share, facts.cpu.budget)}"
        yield warning(f"torch starts {each}, and may use {counted(share, 'CPU')} for them", remedy)
    else:
        yield ok(f"torch starts {counted(threads, 'thread')}, and may use {counted(share, 'CPU')}")
