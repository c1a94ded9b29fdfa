"""Remedies that ask whoever set a limit for more, and what a job's part of a node is."""

import math
import re
from pathlib import PurePosixPath

from gputune.checks._answers import counted
from gputune.checks._remedies import on_host, started, typed
from gputune.facts import Facts

_SLURMD = "/etc/systemd/system/slurmd.service.d"
_CAPABILITY = "securityContext: {capabilities: {add: [IPC_LOCK]}}"
_TOPOLOGY = (
    "ask for the Topology Manager's policy best-effort or stricter on this node (kubelet's topologyManagerPolicy), and "
    "for whole CPUs, with requests equal to limits"
)
_PROPERTY = {"cpu": "CPUQuota=", "memory": "MemoryMax=infinity"}
_NONE = {"cpu.max": "max", "cpu.cfs_quota_us": "-1", "memory.max": "max", "memory.limit_in_bytes": "-1"}
_WORDS = {"cpu": "CPUs", "memory": "memory"}


def more(facts: Facts, kind: str, file: str | None) -> str:
    """How to get about twice as much of a kind, `cpu` or `memory`; `file` is the cgroup file that limits it."""
    amount = _twice(facts, kind)
    if facts.scheduler.name == "slurm":
        option = f"--cpus-per-task={amount}" if kind == "cpu" else f"--mem={amount}G"
        return typed(f"#SBATCH {option}", where="in the job's script", note="up to twice as much as now")
    if facts.scheduler.name in ("lsf", "pbs"):
        return f"submit the job again with more {_WORDS[kind]}"
    if facts.container.kind in ("kubernetes", "docker", "podman"):
        pod = f'cpu: "{amount}"' if kind == "cpu" else f"memory: {amount}Gi"
        docker = f"--cpus={amount}" if kind == "cpu" else f"--memory={amount}g"
        return started(facts, docker, f"resources: {{limits: {{{pod}}}}}", note="up to twice as much as now")
    if facts.container.kind:
        return f"start this container again with more {_WORDS[kind]}"
    return _of_system(kind, PurePosixPath(file or ""))


def locked_memory(facts: Facts) -> str:
    if facts.scheduler.name == "slurm":
        return typed(
            f"sudo mkdir -p {_SLURMD}",
            rf"printf '[Service]\nLimitMEMLOCK=infinity\n' | sudo tee {_SLURMD}/memlock.conf",
            "sudo systemctl daemon-reload",
            "sudo systemctl restart slurmd",
            where="on the node",
            root=True,
            changes_node=True,
            note="and in slurm.conf PropagateResourceLimitsExcept=MEMLOCK",
        )
    if facts.container.kind in (None, "apptainer"):  # which has the limits of the shell that starts it
        limit = 'echo "$(id -un) - memlock unlimited" | sudo tee /etc/security/limits.d/memlock.conf'
        return on_host(limit, changes_node=True, note="then log in anew")
    return started(facts, "--ulimit memlock=-1", _CAPABILITY)


def cpus_near(facts: Facts, near: str) -> str:
    """How to run on these CPUs, a list as the kernel writes it."""
    if facts.scheduler.name == "slurm":
        return typed("#SBATCH --gres-flags=enforce-binding", note="or srun --gpu-bind=closest for each step")
    if facts.container.kind == "kubernetes":
        return _TOPOLOGY
    if facts.container.kind in ("docker", "podman"):
        return started(facts, f"--cpuset-cpus={near}", "")
    return typed(f"taskset -cp {near} $$", note="for this shell and what it starts, where its cpuset has these CPUs")


def _of_system(kind: str, path: PurePosixPath) -> str:
    if re.fullmatch(r"[\w@.-]+\.(service|scope|slice)", path.parent.name):
        command = f"sudo systemctl set-property {path.parent.name} {_PROPERTY[kind]}"
        return typed(command, root=True, changes_node=True, note="lifts the unit's limit")
    if path.name in _NONE and re.fullmatch(r"[\w/@:,.-]+", str(path)):
        command = f"echo {_NONE[path.name]} | sudo tee {path}"
        return typed(command, root=True, changes_node=True, note="lifts the group's limit")
    return f"ask whoever set the limit for more {_WORDS[kind]}"


def _twice(facts: Facts, kind: str) -> int:
    """Twice the limit in whole CPUs or GiB, at least two and one, and no more than the machine has."""
    if kind == "cpu":
        return max(1, min(facts.cpu.logical_count, max(2, math.ceil(2 * (facts.cpu.quota or facts.cpu.budget)))))
    twice = 2 * (facts.memory.limit_bytes or 0)
    return max(1, math.ceil(min(twice, facts.memory.total_bytes or twice) / (1 << 30)))


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
