"""Does this process run on CPUs near the GPU?

In a machine with several sockets each GPU is attached to one of them. Transfers from a process on another socket cross
the link between the sockets, which is slower and adds latency. Bind the process to the GPU's CPUs, or let the scheduler
do it (Slurm: `--gpu-bind=closest`).

Source: nvmlDeviceGetCpuAffinity; sched_getaffinity(2).
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, ok, warning
from gputune.checks._remedies import started, typed
from gputune.facts import cpu_list

TOPOLOGY = (
    "ask for the Topology Manager's policy best-effort or stricter on this node (kubelet's topologyManagerPolicy), and "
    "for whole CPUs, with requests equal to limits"
)


@each_gpu("cpu_affinity", used_by_torch=True)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    near, mine = gpu.health.cpu_affinity or "", facts.cpu.affinity or ""
    if not cpu_list.cpus(near) & cpu_list.cpus(mine):
        return warning(f"the CPUs near it are {near}, but this process may run only on {mine}", _remedy(facts, near))
    return ok(f"this process may run on CPUs near it ({near})")


def _remedy(facts: Facts, near: str) -> str:
    if facts.scheduler.name == "slurm":
        return typed("#SBATCH --gres-flags=enforce-binding", note="or srun --gpu-bind=closest for each step")
    if facts.container.kind == "kubernetes":
        return TOPOLOGY
    if facts.container.kind in ("docker", "podman"):
        return started(facts, f"--cpuset-cpus={near}", "")
    return typed(f"taskset -cp {near} $$", note="for this shell and what it starts, where its cpuset has these CPUs")
