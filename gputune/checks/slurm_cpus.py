"""Did Slurm give a task with a GPU more than one core?

Slurm gives a task one core unless it is asked for more; the DataLoader and the thread that feeds the GPU then share it.
Ask for the node's CPUs divided by its GPUs (`--cpus-per-task`).

Source: Slurm, sbatch, --cpus-per-task.
"""

from gputune.checks._answers import Facts, Findings, Measurements, counted, not_applicable, ok, warning
from gputune.checks._remedies import typed

CORE = 2
"""The CPUs (hardware threads) of one core, which is what Slurm grants by default."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    slurm = facts.scheduler
    cpus = min(slurm.cpus_of_task or facts.cpu.affinity_count, facts.cpu.affinity_count)
    granted = f"GPU {slurm.gpus}" if slurm.gpus else counted(slurm.gpu_count or 0, "GPU")
    if slurm.name != "slurm":
        yield not_applicable("this is not a Slurm job")
    elif slurm.gpu_count and (slurm.cpus_per_task == 1 or (slurm.cpus_per_task is None and cpus <= CORE)):
        message = f"Slurm granted {granted}, but only one core to each task"
        note = "the node's CPUs divided by its GPUs, for each GPU of a task"
        on_node = max(1, len(facts.pci_gpus or facts.gpus))
        tasks = 1 if slurm.torchrun else slurm.local_ranks
        of_task = min(on_node, max(1, slurm.gpu_count // tasks))
        share = max(2, facts.cpu.logical_count * of_task // on_node)
        remedy = typed(f"#SBATCH --cpus-per-task={share}", note=note)
        yield warning(message, remedy, "SLURM_CPUS_PER_TASK")
    else:
        yield ok(f"each task may use {counted(cpus, 'CPU')}")
