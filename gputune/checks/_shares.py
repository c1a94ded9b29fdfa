"""What a job with some of a node's GPUs may have of its CPUs and memory."""

from gputune.checks._answers import counted
from gputune.checks._remedies import typed
from gputune.facts import Facts


def cpus_of_task(facts: Facts) -> int:
    """The CPUs for one task: those of the node divided by its GPUs, for each of the task's GPUs."""
    on_node = max(1, len(facts.pci_gpus or facts.gpus))
    tasks = 1 if facts.scheduler.torchrun else facts.scheduler.local_ranks
    of_task = min(on_node, max(1, (facts.scheduler.gpu_count or 1) // tasks))
    return max(2, facts.cpu.logical_count * of_task // on_node)


def limits_of_pod(facts: Facts) -> str:
    """Limits for this pod: of nine tenths of the node, an equal share for each GPU that the pod has."""
    own = sum(not gpu.is_mig_slice for gpu in facts.gpus)
    on_node = max(1, own, len(facts.pci_gpus or ()))
    share = max(1, own) * 0.9 / on_node
    cpus, gibibytes = int(facts.cpu.logical_count * share), int(((facts.memory.total_bytes or 0) >> 30) * share)
    gpus = f", nvidia.com/gpu: {own}" if own and not any(gpu.health.mig for gpu in facts.gpus) else ""
    limits = f'resources: {{limits: {{cpu: "{max(1, cpus)}", memory: {max(1, gibibytes)}Gi{gpus}}}}}'
    note = f"this pod's part of the node: {counted(max(1, own), 'GPU')} of {on_node}" if own else "a share of the node"
    return typed(limits, where="in the container of the pod's manifest", note=note)
