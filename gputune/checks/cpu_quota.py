"""Is there a CPU quota that torch and the DataLoader do not see?

A container's `--cpus=2` (a Kubernetes limit likewise) is a quota of time, not a set of CPUs: torch still starts a thread,
and the DataLoader advises a worker, for every CPU in the affinity. All of them share the quota, and the kernel stops them
together when it is spent. Give torch and the loader the CPUs that there are: OMP_NUM_THREADS and `num_workers`; or ask
for more (`docker run --cpus=8`, Kubernetes `resources.limits.cpu`).

Source: Linux, CFS Bandwidth Control; torch.get_num_threads and DataLoader count the affinity.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import reason, unread
from gputune.facts import Facts
from gputune.measurement import Measurement

CHECK = "cpu_quota"


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    cpu = facts.cpu
    if reason(facts, "cpu.quota"):
        yield unread(facts, CHECK, "cpu.quota", "the CPU quota")
    elif cpu.quota is None:
        yield Finding(check=CHECK, severity="OK", message=f"no quota: all {cpu.affinity_count} CPUs can be used")
    elif cpu.quota >= cpu.affinity_count:
        message = f"the quota of {cpu.quota:g} CPUs covers all {cpu.affinity_count}"
        yield Finding(check=CHECK, severity="OK", message=message)
    elif (facts.libraries.torch_threads or cpu.affinity_count) <= cpu.budget:
        started = facts.libraries.torch_threads
        message = f"the quota allows {cpu.quota:g} of {cpu.affinity_count} CPUs, and torch starts {started} threads"
        yield Finding(check=CHECK, severity="OK", message=message)
    else:
        yield Finding(
            check=CHECK,
            severity="WARNING",
            message=f"the quota allows {cpu.quota:g} CPUs, but torch and the DataLoader count {cpu.affinity_count}",
            remedy=f"export OMP_NUM_THREADS={cpu.budget}, and give DataLoader num_workers={cpu.budget} or less",
            subject=cpu.quota_source,
        )
