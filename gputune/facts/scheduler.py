"""What a scheduler or launcher granted: Slurm's and torchrun's variables, Kubernetes by its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    __pydantic_config__ = {"strict": True, "extra": "forbid"}

    name: str | None = None
    """slurm, kubernetes, or None."""
    job: str | None = None
    cpus_per_task: int | None = None
    gpus: str | None = None
    """The GPUs granted, as the scheduler wrote them."""
    local_ranks: int = 1
    """Processes of one job on this node that share its CPUs."""


def read(host: Host) -> Scheduler:
    env = host.environ
    slurm = "SLURM_JOB_ID" in env
    name = "slurm" if slurm else "kubernetes" if "KUBERNETES_SERVICE_HOST" in env else None
    return Scheduler(
        name=name,
        job=env.get("SLURM_JOB_ID"),
        cpus_per_task=_count(env.get("SLURM_CPUS_PER_TASK")) if slurm else None,
        gpus=next(
            (env[key] for key in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE") if env.get(key)), None
        ),
        local_ranks=_count(env.get("LOCAL_WORLD_SIZE")) or _tasks_here(env.get("SLURM_STEP_TASKS_PER_NODE")) or 1,
    )


def _count(text: str | None) -> int | None:
    """A positive whole number of a plausible length, or None for anything else."""
    if not text or not re.fullmatch(r"[0-9]{1,9}", text):
        return None
    return int(text) or None


def _tasks_here(text: str | None) -> int | None:
    """Slurm's `4(x2),3`: the first node's count, the largest there is in the uniform jobs that gputune is used in."""
    return _count(text.split(",")[0].split("(")[0]) if text else None
