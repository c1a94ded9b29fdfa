"""What a scheduler or launcher granted: Slurm's and torchrun's variables, Kubernetes by its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .files import Files

_JOBS = {"slurm": "SLURM_JOB_ID", "lsf": "LSB_JOBID", "pbs": "PBS_JOBID", "kubernetes": "KUBERNETES_SERVICE_HOST"}
"""Scheduler to a variable that only its jobs have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    name: str | None = None
    """slurm, lsf, pbs, kubernetes, or None."""
    job: str | None = None
    cpus_per_task: int | None = None
    """Slurm's grant to each task; None where none was asked for (then Slurm gives one)."""
    cpus_on_node: int | None = None
    """Slurm's grant to all tasks of the step, or of the batch script's job, on this node."""
    srun_cpus_per_task: int | None = None
    """What SRUN_CPUS_PER_TASK asks of srun, which since Slurm 22.05 does not take over the job's own."""
    step: bool = False
    """Started by srun."""
    gpus: str | None = None
    """The GPUs granted, as the scheduler wrote them."""
    local_ranks: int = 1
    """Processes of one job on this node that share its CPUs."""
    torchrun: bool = False
    gpu_sharing: str | None = None
    """How the GPUs granted are shared with others' jobs: shard or mps; None where they are not."""

    @property
    def cpus_of_task(self) -> int | None:
        """What a task may use of the grant, at least 1; None where the scheduler names no number.

        Without task affinity a process may run on the whole node, and where no number was asked for each task, only
        SLURM_CPUS_ON_NODE tells what is the job's. Source: Slurm, sbatch and srun, output environment variables.
        """
        if self.torchrun and not self.step and self.cpus_on_node is not None:
            return self.cpus_on_node  # of the batch script, in which torchrun's ranks have all that the job has here
        if self.cpus_per_task is not None or self.cpus_on_node is None:
            return self.cpus_per_task
        return max(1, self.cpus_on_node // (1 if self.torchrun else self.local_ranks))

    @property
    def cpus_of_rank(self) -> int | None:
        """The same for one rank: the ranks that torchrun starts are all of one task."""
        granted = self.cpus_of_task
        return max(1, granted // self.local_ranks) if granted is not None and self.torchrun else granted


def read(files: Files) -> Scheduler:
    env = files.environ
    slurm = "SLURM_JOB_ID" in env
    name = next((name for name, variable in _JOBS.items() if variable in env), None)
    return Scheduler(
        name=name,
        job=env.get(_JOBS.get(name or "", "")) if name != "kubernetes" else None,
        cpus_per_task=_count(env.get("SLURM_CPUS_PER_TASK")) if slurm else None,
        cpus_on_node=_count(env.get("SLURM_CPUS_ON_NODE")) if slurm else None,
        gpus=next(
            (env[key] for key in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE") if env.get(key)), None
        ),
        srun_cpus_per_task=_count(env.get("SRUN_CPUS_PER_TASK")),
        step=slurm and _number(env.get("SLURM_STEP_ID")),
        torchrun="TORCHELASTIC_RUN_ID" in env,
        gpu_sharing=_sharing(files),
        local_ranks=_count(env.get("LOCAL_WORLD_SIZE")) or _tasks_here(env.get("SLURM_STEP_TASKS_PER_NODE")) or 1,
    )


def _number(text: str | None) -> bool:
    """A step of srun's has a number; the batch script's own is named or stands above them all."""
    return bool(text and re.fullmatch(r"[0-9]{1,9}", text))


def _sharing(files: Files) -> str | None:
    if "SLURM_SHARDS_ON_NODE" in files.environ or "shard" in files.environ.get("SLURM_JOB_GRES", ""):
        return "shard"
    if {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PIPE_DIRECTORY"} & set(files.environ):
        return "mps"
    return None


def _count(text: str | None) -> int | None:
    """A positive whole number of a plausible length, or None for anything else."""
    if not text or not re.fullmatch(r"[0-9]{1,9}", text):
        return None
    return int(text) or None


def _tasks_here(text: str | None) -> int | None:
    """Slurm's `4(x2),3`: the first node's count, the largest there is in the uniform jobs that gputune is used in."""
    return _count(text.split(",")[0].split("(")[0]) if text else None
