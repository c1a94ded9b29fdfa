"""Is there a CPU quota that torch and the DataLoader do not see?

`docker run --cpus=2` and a Kubernetes limit set a quota of CPU time, not a set of CPUs: torch still starts a thread for
every CPU (or core) of the affinity, and the DataLoader suggests a worker for every CPU. They share the quota, and the
kernel stops all of them when it is used up. Limit both with OMP_NUM_THREADS and `num_workers`, or ask for more CPUs
(`docker run --cpus=8`, Kubernetes `resources.limits.cpu`). Below one CPU even a single thread is stopped, and only more
CPUs help.

Source: Linux, CFS Bandwidth Control; torch.get_num_threads and DataLoader count the affinity.
"""

from gputune.checks._answers import Facts, Findings, Measurements, counted, ok, unread, warning
from gputune.checks._questions import reason
from gputune.checks._remedies import more, typed


def check(facts: Facts, measurements: Measurements) -> Findings:
    cpu, threads = facts.cpu, facts.libraries.torch_threads
    if reason(facts, "cpu.quota"):
        yield unread(facts, "cpu.quota", "the CPU quota")
    elif cpu.quota is None:
        yield ok(f"no quota: all {cpu.affinity_count} CPUs can be used")
    elif cpu.quota < 1:
        message = f"the quota allows {cpu.quota:g} of a CPU: even a single thread is stopped again and again"
        yield warning(message, more(facts, "cpu", cpu.quota_source), cpu.quota_source)
    elif cpu.quota >= cpu.affinity_count:
        yield ok(f"the quota of {cpu.quota:g} CPUs covers all {cpu.affinity_count}")
    elif (threads or cpu.affinity_count) <= cpu.budget:
        yield ok(f"the quota allows {cpu.quota:g} of {cpu.affinity_count} CPUs, and torch starts {threads} threads")
    else:
        counts = f"torch and the DataLoader count {cpu.affinity_count}"
        if threads not in (None, cpu.affinity_count):
            counts = f"torch starts {counted(threads, 'thread')} and the DataLoader counts {cpu.affinity_count}"
        message = f"the quota allows {cpu.quota:g} CPUs, but {counts}"
        note = f"and give DataLoader num_workers={cpu.budget} or less"
        yield warning(message, typed(f"export OMP_NUM_THREADS={cpu.budget}", note=note), cpu.quota_source)
