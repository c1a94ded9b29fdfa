"""Does this pod have limits?

Without a memory limit a leak uses up the node's memory, and the kernel then kills some process on the node; without a
CPU limit torch starts a thread for each of the node's CPUs, which other pods need too. Set both limits for the
container.

Source: Kubernetes, Resource Management for Pods and Containers.
"""

from gputune.checks._answers import Facts, Findings, Measurements, gib, not_applicable, ok, unread, warning
from gputune.checks._limits import limits_of_pod
from gputune.checks._questions import reason


def check(facts: Facts, measurements: Measurements) -> Findings:
    cpu, limit = facts.cpu, facts.memory.limit_bytes
    own_cpus = cpu.quota is not None or cpu.affinity_count < cpu.logical_count  # a quota, or CPUs of its own
    missing = [name for name, there in (("CPU", own_cpus), ("memory", limit is not None)) if not there]
    gap = next((fact for fact in ("cpu.quota", "memory.limit_bytes") if reason(facts, fact)), None)
    if facts.scheduler.name != "kubernetes":
        yield not_applicable("this is not a Kubernetes pod")
    elif gap:
        yield unread(facts, gap, "the pod's limits")
    elif missing:
        message = f"the pod has no {' and no '.join(missing)} limit, and the node has {cpu.logical_count} CPUs"
        yield warning(message, limits_of_pod(facts))
    else:
        yield ok(f"limits: {cpu.quota or cpu.affinity_count:g} CPUs, {gib(limit or 0)}")
