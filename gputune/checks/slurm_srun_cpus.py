"""Did srun pass the job's CPUs on to this step?

Since Slurm 22.05 srun does not inherit the job's `--cpus-per-task`: each task of the step gets one CPU unless srun is
given the option too. Export SRUN_CPUS_PER_TASK in the batch script.

Source: Slurm, RELEASE_NOTES of 22.05; srun, SRUN_CPUS_PER_TASK.
"""

from gputune.checks._answers import Facts, Findings, Measurements, not_applicable, ok, warning
from gputune.checks._remedies import typed


def check(facts: Facts, measurements: Measurements) -> Findings:
    slurm, cpus = facts.scheduler, facts.cpu.affinity_count
    if not slurm.step:
        yield not_applicable("this process was not started by srun")
    elif slurm.cpus_per_task and cpus < slurm.cpus_per_task and slurm.srun_cpus_per_task is None:
        message = f"the job requested {slurm.cpus_per_task} CPUs per task, but srun gave this one {cpus}"
        remedy = typed('export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"', where="in the batch script, before srun")
        yield warning(message, remedy, "SRUN_CPUS_PER_TASK")
    else:
        yield ok(f"srun gave this task {cpus} CPUs")
