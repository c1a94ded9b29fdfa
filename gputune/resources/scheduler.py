"""The CPUs and GPUs that a scheduler or launcher granted, read from its environment variables."""

import re
from dataclasses import dataclass

from .files import Files

_JOBS = {"slurm": "SLURM_JOB_ID", "lsf": "LSB_JOBID", "pbs": "PBS_JOBID", "kubernetes": "KUBERNETES_SERVICE_HOST"}
"""Scheduler to a variable that is set only in its jobs."""

_BINDING = ("SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND", "SLURM_NTASKS_PER_GPU")
"""Variables of Slurm's that show that each task may see only its own GPUs. Source: Slurm, srun, --gpu-bind."""
_MOST_GPUS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    name: str | None = None
    """slurm, lsf, pbs, kubernetes, or None."""
    job: str | None = None
    cpus_per_task: int | None = None
    """Slurm's grant to each task; None where the job did not request one (Slurm then grants one CPU)."""
    cpus_on_node: int | None = None
    """Slurm's grant to all tasks of the step, or of the batch script's job, on this node."""
    srun_cpus_per_task: int | None = None
    """The value of SRUN_CPUS_PER_TASK. Since Slurm 22.05 srun needs it, as it ignores the job's own --cpus-per-task."""
    step: bool = False
    """Whether srun started this process."""
    gpus: str | None = None
    """The numbers of the GPUs granted, as the scheduler writes them: `0,1` or `0-3`."""
    gpu_count: int | None = None
    """How many GPUs were granted on this node; 0 for none, None where the scheduler does not say it."""
    gpus_bound: bool = False
    """Each task has only some of the step's GPUs, so that `gpu_count` is more than this process may see."""
    local_ranks: int = 1
    """The number of processes of one job that share this node's CPUs."""
    torchrun: bool = False
    gpu_sharing: str | None = None
    """How the granted GPUs are shared with other jobs: shard or mps; None where they are not."""

    @property
    def cpus_of_task(self) -> int | None:
        """At least 1; None if none is given. Source: Slurm, sbatch and srun, output environment variables."""
        if self.torchrun and not self.step and self.cpus_on_node is not None:
            return self.cpus_on_node  # torchrun's ranks share all CPUs that the batch script has on this node
        if self.cpus_per_task is not None or self.cpus_on_node is None:
            return self.cpus_per_task
        return max(1, self.cpus_on_node // (1 if self.torchrun else self.local_ranks))

    @property
    def cpus_of_rank(self) -> int | None:
        """The number of CPUs granted to one rank; torchrun's ranks share a task's. None where none is given."""
        granted = self.cpus_of_task
        return max(1, granted // self.local_ranks) if granted is not None and self.torchrun else granted


def read(files: Files) -> Scheduler:
    """The grant of this process's scheduler; all defaults where there is no scheduler."""
    env = files.environ
    slurm = "SLURM_JOB_ID" in env
    name = next((name for name, variable in _JOBS.items() if variable in env), None)
    # As in `4(x2),3`, where jobs whose tasks are spread evenly have the largest count first.
    tasks = re.split("[(,]", env.get("SLURM_STEP_TASKS_PER_NODE", ""))[0]
    gpus = env.get("SLURM_STEP_GPUS") or env.get("SLURM_JOB_GPUS") or None
    return Scheduler(
        name=name,
        job=env.get(_JOBS.get(name or "", "")) if name != "kubernetes" else None,
        cpus_per_task=_count(env.get("SLURM_CPUS_PER_TASK")) if slurm else None,
        cpus_on_node=_count(env.get("SLURM_CPUS_ON_NODE")) if slurm else None,
        gpus=gpus,
        gpu_count=_listed(gpus) or _number(env.get("SLURM_GPUS_ON_NODE")),
        gpus_bound=slurm and any(variable in env for variable in _BINDING),
        srun_cpus_per_task=_count(env.get("SRUN_CPUS_PER_TASK")),
        step=slurm and _number(env.get("SLURM_STEP_ID")) is not None,
        torchrun="TORCHELASTIC_RUN_ID" in env,
        gpu_sharing=_sharing(files),
        local_ranks=_count(env.get("LOCAL_WORLD_SIZE")) or _count(tasks) or 1,
    )


def _sharing(files: Files) -> str | None:
    if "SLURM_SHARDS_ON_NODE" in files.environ or "shard" in files.environ.get("SLURM_JOB_GRES", ""):
        return "shard"
    if {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PIPE_DIRECTORY"} & set(files.environ):
        return "mps"
    return None


def _listed(gpus: str | None) -> int | None:
    """How many numbers a list such as `0,2-4` holds; None for any other text."""
    found: set[int] = set()
    for part in (gpus or "").split(","):
        first, last = (_number(end) for end in (part.partition("-")[0], part.rpartition("-")[2]))
        if first is None or last is None or not first <= last < _MOST_GPUS:
            return None
        found.update(range(first, last + 1))
    return len(found)


def _number(text: str | None) -> int | None:
    """A number of at most nine digits, as steps of srun have (the batch step's id is larger); None for other text."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else None


def _count(text: str | None) -> int | None:
    return _number(text) or None
