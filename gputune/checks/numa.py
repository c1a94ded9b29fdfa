"""Does this process run on CPUs near the GPU?

In a machine of several sockets each GPU hangs on one of them; what a process on the other sends goes over the link between
the sockets, slower and later. Bind the process to the GPU's CPUs, or let the scheduler do it (Slurm: `--gpu-bind=closest`).

Source: nvmlDeviceGetCpuAffinity; sched_getaffinity(2).
"""

from gputune.checks._answers import each_gpu, not_seen, ok, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements
from gputune.facts import cpu_list

REMEDY = (
    "taskset -c %s; where the CPUs are granted: Slurm --gpu-bind=closest, docker run --cpuset-cpus, Kubernetes' Topology "
    "Manager; or choose a GPU near them with CUDA_VISIBLE_DEVICES"
)


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, lambda gpu: _of(facts, gpu), "cpu_affinity")


def _of(facts: Facts, gpu: Gpu) -> Finding:
    if others := not_seen(facts, gpu):
        return others
    near, mine = gpu.health.cpu_affinity or "", facts.cpu.affinity or ""
    if not cpu_list.cpus(near) & cpu_list.cpus(mine):
        return warning(f"its CPUs are {near}, and this process may run only on {mine}", REMEDY % near)
    return ok(f"this process may run on CPUs near it ({near})")
