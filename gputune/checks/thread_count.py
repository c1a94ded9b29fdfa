"""Is there a CPU for each of torch's threads?

In every rank torch starts as many threads as MKL_NUM_THREADS or OMP_NUM_THREADS says, or else one for each CPU in the
affinity (for each core, if MKL counts them and a core has two CPUs). If there are more threads than CPUs, they wait for
each other at every barrier.

Source: torch.get_num_threads; OpenMP, OMP_NUM_THREADS.
"""

from gputune.checks._answers import Facts, Findings, Measurements, counted, ok, unread, warning
from gputune.resources.room import budget


def check(facts: Facts, measurements: Measurements) -> Findings:
    threads, ranks, cpus = facts.libraries.torch_threads, facts.scheduler.local_ranks, facts.cpu.affinity_count
    share = budget(cpus, None, facts.cpu.grant, ranks)
    if threads is None:
        yield unread(facts, "libraries.threads", "the number of torch's threads")
    elif threads > share:
        each = f"{counted(threads, 'thread')} in each of {ranks} ranks" if ranks > 1 else counted(threads, "thread")
        unset = "unset MKL_NUM_THREADS && " if "MKL_NUM_THREADS" in facts.environment else ""
        remedy = f"{unset}export OMP_NUM_THREADS={min(share, facts.cpu.budget)}"
        yield warning(f"torch starts {each}, but may use only {counted(share, 'CPU')} for them", remedy)
    else:
        yield ok(f"torch starts {counted(threads, 'thread')}, and may use {counted(share, 'CPU')}")
