"""Does this pod have limits?

Without a memory limit a leak uses up the node's memory, and the kernel then kills some process on the node; without a
CPU limit torch starts a thread for each of the node's CPUs, which other pods need too. Set both limits for the
container.

Source: Kubernetes, Resource Management for Pods and Containers.
"""

from gputune.checks._answers import Facts, Findings, Measurements, gib, not_applicable, ok, unread, warning
from gputune.checks._questions import reason

LIMITS = 'resources: {limits: {cpu: "%d", memory: %dGi, nvidia.com/gpu: 1}} in the container of the pod'


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
        yield warning(message, LIMITS % _share(facts))
    else:
        yield ok(f"limits: {cpu.quota or cpu.affinity_count:g} CPUs, {gib(limit or 0)}")


def _share(facts: Facts) -> tuple[int, int]:
    """The CPUs and GiB of memory for a pod with one GPU: an equal share per GPU of nine tenths of the node."""
    gpus = max(1, len(facts.pci_gpus or facts.gpus))
    gibibytes = (facts.memory.total_bytes or 0) >> 30
    return max(1, facts.cpu.logical_count * 9 // 10 // gpus), max(1, gibibytes * 9 // 10 // gpus)
