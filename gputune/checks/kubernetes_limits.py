"""Does this pod have limits?

Without a memory limit a leak uses up the node's memory, and the kernel then kills some process on the node; without a
CPU limit torch starts a thread for each CPU or core of the node, which other pods need too. Set both limits for the
container.

Source: Kubernetes, Resource Management for Pods and Containers.
"""

from gputune.checks._answers import Facts, Findings, Measurements, counted, gib, not_applicable, ok, unread, warning
from gputune.checks._questions import reason
from gputune.checks._remedies import typed


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
        yield warning(message, _remedy(facts))
    else:
        yield ok(f"limits: {cpu.quota or cpu.affinity_count:g} CPUs, {gib(limit or 0)}")


def _remedy(facts: Facts) -> str:
    """Limits for this pod: of nine tenths of the node, an equal share for each GPU that the pod has."""
    own = sum(not gpu.is_mig_slice for gpu in facts.gpus)
    on_node = max(1, own, len(facts.pci_gpus or ()))
    share = max(1, own) * 0.9 / on_node
    cpus, gibibytes = int(facts.cpu.logical_count * share), int(((facts.memory.total_bytes or 0) >> 30) * share)
    gpus = f", nvidia.com/gpu: {own}" if own and not any(gpu.health.mig for gpu in facts.gpus) else ""
    limits = f'resources: {{limits: {{cpu: "{max(1, cpus)}", memory: {max(1, gibibytes)}Gi{gpus}}}}}'
    note = f"this pod's part of the node: {counted(max(1, own), 'GPU')} of {on_node}" if own else "a share of the node"
    return typed(limits, where="in the container of the pod's manifest", note=note)
