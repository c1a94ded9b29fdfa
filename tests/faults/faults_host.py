"""Faults of the host: CPUs, memory, limits, folders, containers, schedulers; and what only a load shows."""

# ruff: noqa: F403, F405 - the changes are the words of this table
from dataclasses import replace
from functools import partial
from typing import Any

from faults.changes import *
from faults.fault import Expect, Fault
from faults.fault import fault as expecting_one
from faults.faults_gpu import LAST
from faults.machines import Machine
from making import row

CGROUP = "Linux, cgroup v2"
JOB = "/sys/fs/cgroup/job/"


fault = partial(expecting_one, subject="host")


def quota(text: str, threads: int | None = None, stat: str = "nr_periods 100\nnr_throttled 0\n") -> Any:
    def inject(made: Machine) -> None:
        limited(made)
        made.files |= {f"{JOB}cpu.max": text, f"{JOB}cpu.stat": stat}
        if threads:
            made.torch["threads"] = threads

    return inject


def _limits(name: str, soft: str) -> Any:
    def inject(made: Machine) -> None:
        lines = made.files["/proc/self/limits"].splitlines()
        made.files["/proc/self/limits"] = "\n".join(
            f"{name:<26}{soft:<21}{soft:<21}units     " if line.startswith(name) else line for line in lines
        ) + "\n"  # fmt: skip

    return inject


def _locked(made: Machine) -> None:
    _limits("Max locked memory", "65536")(made)
    made.files["/proc/self/status"] = "Name:\tpython\nCapEff:\t00000000a80425fb\n"
    made.files |= {f"/dev/infiniband/uverbs{number}": "" for number in range(8)}


def memory(free_gib: int, total_gib: int) -> Any:
    def inject(made: Machine) -> None:
        made.files["/proc/meminfo"] = (
            f"MemTotal: {total_gib << 20} kB\nMemFree: {free_gib << 20} kB\nMemAvailable: {free_gib << 20} kB\n"
        )

    return inject


def _limit_reached(made: Machine) -> None:
    docker(made)
    limited(made, memory_gib=64)
    made.files[f"{JOB}memory.current"] = f"{63 << 30}\n"


def _srun(made: Machine) -> None:
    """The job asked for 16 CPUs a task, and its step got one core."""
    job("0", 16)(made)
    del made.env["SRUN_CPUS_PER_TASK"]
    made.affinity, made.torch["threads"] = [0, 1], 2


THROTTLED = "nr_periods 1000\nnr_throttled 400\nthrottled_usec 9000000\n"
STAT = "Linux, proc_stat(5)"
FAULTS = [
    fault("a quota of 2 CPUs that torch does not see", "h200_x1", quota("200000 100000\n"), "cpu_quota", "WARNING",
        JOB + "cpu.max", CGROUP + ", cpu.max"),
    fault("a quota of 4.5 CPUs", "cpu", quota("450000 100000\n"), "cpu_quota", "WARNING", JOB + "cpu.max",
        CGROUP + ", cpu.max"),
    fault("a quota of 0.1 CPU", "l4", quota("10000 100000\n", threads=1), "cpu_quota", "WARNING", JOB + "cpu.max",
        CGROUP + ", cpu.max"),
    fault("a quota of 0.1 CPU", "cpu", quota("10000 100000\n", threads=1), "cpu_quota", "WARNING", JOB + "cpu.max",
        CGROUP + ", cpu.max"),
    fault("a quota of half a CPU in a period of 20 ms", "t4", quota("10000 20000\n", threads=1), "cpu_quota",
        "WARNING", JOB + "cpu.max", CGROUP + ", cpu.max"),
    fault("a quota in a v1 hierarchy", "a100_pcie", in_v1(800000), "cpu_quota", "WARNING",
        "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "Linux, CFS Bandwidth Control"),
    fault("a cpu.max of -1, which is no number of CPUs", "l4", quota("-1 100000\n"), "cpu_quota", "UNKNOWN", None,
        CGROUP + ": max, or a number of microseconds"),
    fault("a cpu.max of nonsense", "h100", quota("lots\n"), "cpu_quota", "UNKNOWN", None,
        CGROUP + ": max, or a number of microseconds"),
    fault("the quota stops the group", "h200_x1", quota("800000 100000\n", threads=8, stat=THROTTLED), "cpu_throttled",
        "WARNING", JOB + "cpu.max", CGROUP + ", cpu.stat"),
    fault("more threads than CPUs", "h200_x8", every(having(affinity=[*range(8)]), torch(threads=64)), "thread_count",
        "WARNING", None, "torch.get_num_threads"),
    fault("more threads than CPUs by MKL", "cpu", every(torch(threads=64), env(MKL_NUM_THREADS="64")), "thread_count",
        "WARNING", (None, "MKL_NUM_THREADS"), "torch.get_num_threads"),
    fault("torchrun leaves one thread", "h100", ranks(1), "torchrun_threads", "WARNING", "OMP_NUM_THREADS",
        "torch/distributed/run.py"),
    fault("torchrun leaves one thread", "a100_sxm", ranks(1), "torchrun_threads", "WARNING", "OMP_NUM_THREADS",
        "torch/distributed/run.py"),
    fault("others use the CPUs", "h200_x1", having(busy_cpus=12), "machine_busy", "WARNING", (None, "CPU"), STAT),
    fault("other guests take the CPUs", "t4", having(stolen_cpus=6), "machine_busy", "WARNING", (None, "CPU"),
        STAT + ", steal"),
    fault("little memory is left", "l40s", memory(3, 512), "memory_left", "WARNING", None,
        "/proc/meminfo, MemAvailable", touches=("memory",)),
    fault("little memory is left below the limit", "h100", _limit_reached, "memory_left", "WARNING", None,
        CGROUP + ", memory.max"),
    fault("/proc/meminfo cannot be read", "h100", lambda made: made.files.pop("/proc/meminfo"), "memory_left",
        "UNKNOWN", None, "absence is not health", touches=("memory",)),
    fault("/proc/meminfo cannot be read below a limit", "l4", lambda made: (docker(made), limited(made, memory_gib=16),
        made.files.pop("/proc/meminfo")), "memory_left", "UNKNOWN", None, "absence is not health"),
    fault("docker's small /dev/shm", "h100", every(docker, having(shm_gib=0.0625)), "shm_size", "WARNING", "/dev/shm",
        "moby, DefaultShmSize; PyTorch's README on Docker", remedy="shm-size"),
    fault("a pod's small /dev/shm", "a100_sxm", every(kubernetes, having(shm_gib=0.0625)), "shm_size", "WARNING",
        "/dev/shm", "Kubernetes, emptyDir", remedy="emptyDir"),
    fault("a full /dev/shm", "l40s", having(shm_gib=64, shm_free_gib=0.01), "shm_size", "WARNING", "/dev/shm",
        "torch.utils.data.DataLoader", touches=("shm",)),
    fault("few open files", "h100", _limits("Max open files", "1024"), "open_files_limit", "WARNING", None,
        "getrlimit(2), RLIMIT_NOFILE", touches=("limits",)),
    fault("few open files", "cpu", _limits("Max open files", "256"), "open_files_limit", "WARNING", None,
        "getrlimit(2), RLIMIT_NOFILE", touches=("limits",)),
    fault("little locked memory beside InfiniBand", "h100", _locked, "memlock_limit", "WARNING", None,
        "NCCL, Troubleshooting; getrlimit(2)", touches=("limits",)),
    fault("a home that cannot be written to", "h200_x1", having(closed=["/root"]), "cache_folders", "WARNING",
        "HOME", "XDG Base Directory Specification", touches=("folders",), no_remedy=r"(^|\s)HOME="),
    fault("no folder for temporary files", "l4", having(closed=["/tmp"]), "cache_folders", "WARNING", "TMPDIR",
        "Python, tempfile", touches=("folders",), also=("compile_needs",), no_remedy=r"=/tmp\b"),
    fault("a full disk", "a10g", having(space=1 << 20), "cache_folders", "WARNING",
        ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME"), "torch.hub", touches=("folders",),
        also=("compile_needs",)),
    fault("a user id without a name", "a10g", every(docker, env(HOME="/tmp"),
        having(user=(1234, None, None), closed=["/root"])), "unknown_uid", "WARNING", None,
        "torch._inductor, default_cache_dir", also=("compile_needs",)),
    fault("a pod without limits", "h100", lambda made: kubernetes(made, 0, 0), "kubernetes_limits", "WARNING", None,
        "Kubernetes, Resource Management for Pods and Containers"),
    fault("a pod without a memory limit", "l40s", lambda made: kubernetes(made, 32, 0), "kubernetes_limits", "WARNING",
        None, "Kubernetes, Resource Management for Pods and Containers"),
    fault("one core for a task with a GPU", "a100_sxm", job("0", 1), "slurm_cpus", "WARNING", "SLURM_CPUS_PER_TASK",
        "Slurm, sbatch, --cpus-per-task"),
    fault("one core for a task with four GPUs", "h100", job("0,1,2,3", 1), "slurm_cpus", "WARNING",
        "SLURM_CPUS_PER_TASK", "Slurm, sbatch, --cpus-per-task"),
    fault("srun did not pass on the CPUs", "a100_pcie", _srun, "slurm_srun_cpus", "WARNING", "SRUN_CPUS_PER_TASK",
        "Slurm, RELEASE_NOTES of 22.05"),
    fault("a Slurm shard", "h200_x4", job("0", 16, SLURM_SHARDS_ON_NODE="1"), "gpu_shared", "WARNING", None,
        "Slurm, GRES, sharding"),
    fault("MPS", "h100", env(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50"), "gpu_shared", "WARNING",
        (None, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "NVIDIA, Multi-Process Service", touches=("mps", "listed",
        "ComputeMode")),
]  # fmt: skip


# CPUs of another socket, for each GPU of it.
def _far(made: Machine) -> None:
    made.affinity = list(range(made.cpus // 2))
    made.torch["threads"] = made.cpus // 2


FAULTS += [
    Fault("a process bound to the other socket", kind, _far, tuple(Expect("numa", "WARNING", (f"GPU {index}",))
        for index in range(4, 8)),
          "nvmlDeviceGetCpuAffinity; sched_getaffinity(2)", touches=("*",), subject="host")
    for kind in ("a100_sxm", "h100", "b200")
]  # fmt: skip


# What only a load shows.
def _slow(made: Machine) -> None:
    for run in (1, 2):
        for device in range(8):
            rate = 500.0 if device == 5 else 700.0 + device
            made.measurements.append(
                replace(row("side_by_side", "matmul", rate, f"cuda:{device}"), params={"run": run})
            )


def under_load(name: str, kind: str, check: str, source: str, **conditions: float) -> Fault:
    return fault(
        name, kind, loaded(LAST[kind], **conditions), check, "WARNING", f"GPU {LAST[kind]}", source, touches=("load",)
    )


BENCH = "NVML, nvmlClocksEventReasons, during a probe"
FAULTS += [
    under_load("hardware slowdown under load", "h100", "throttling", BENCH, throttle_reasons=8.0),
    under_load("heat under load", "rtx4090", "throttling", BENCH, throttle_reasons=float(0x24)),
    under_load("power brake under load", "a100_sxm", "throttling", BENCH, throttle_reasons=float(0x84)),
    under_load("clocks held by a setting under load", "l40s", "clock_lock", BENCH, throttle_reasons=6.0),
    under_load("PCIe generation 1 under load", "h100", "pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration",
        pcie_generation=1.0),
    under_load("PCIe generation 3 of 4 under load", "laptop", "pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration",
        pcie_generation=3.0),
    under_load("another process was on it meanwhile", "h200_x1", "measured_alone",
        "nvmlDeviceGetComputeRunningProcesses", gpu_processes=2.0, other_cpus=0.0),
    fault("the CPUs were busy meanwhile", "t4", loaded(gpu_processes=1.0, other_cpus=7.0), "measured_alone",
        "WARNING", "CPU", STAT, touches=("load",)),
    fault("one of eight is slower", "h100", _slow, "slow_gpu", "WARNING", "GPU 5",
        "Not All GPUs Are Created Equal (SC'22)", touches=("load",)),
]  # fmt: skip
