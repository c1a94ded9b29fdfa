"""What a machine may be, and what changes it. A `Change` takes a machine; most functions here make one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from faults.machines import QUIET_LOG, UPTIME_HOURS, Machine
from making import row

from gputune.host import Unreadable

Change = Callable[[Machine], Any]


def every(*changes: Change) -> Change:
    def change(made: Machine) -> None:
        for one in changes:
            one(made)

    return change


def having(**fields: Any) -> Change:
    def change(made: Machine) -> None:
        for name, value in fields.items():
            setattr(made, name, value)

    return change


def env(**variables: str) -> Change:
    return lambda made: made.env.update(variables)


def torch(**answers: Any) -> Change:
    return lambda made: made.torch.update(answers)


def of_all(changed: Mapping[str, Any] | None = None, **answers: Any) -> Change:
    def change(made: Machine) -> None:
        for gpu in made.gpus:
            gpu.update({**(changed or {}), **answers})

    return change


def sees(*indices: int) -> Change:
    return lambda made: made.torch.update(devices=[made.torch["devices"][index] for index in indices])


def visible(value: str, *indices: int) -> Change:
    """A value of CUDA_VISIBLE_DEVICES, and the GPUs that torch sees with it."""
    return every(env(CUDA_VISIBLE_DEVICES=value), sees(*indices))


def lose(made: Machine, index: int = 5, file: bool = True, bus: bool = True) -> None:
    """NVML and torch no longer list a GPU; its device file and its place on the bus may be gone too."""
    address = made.addresses[index]
    del made.nvml["devices"][index]
    if made.torch.get("devices"):
        del made.torch["devices"][index]
    if not file:
        del made.files[f"/dev/nvidia{index}"]
    if not bus:
        del made.files[f"/sys/bus/pci/devices/{address}/uevent"]
    del made.addresses[index]


def held_by(made: Machine, address: str, driver: str | None) -> None:
    """Another driver than NVIDIA's, or none, holds the GPU on the bus."""
    path = f"/sys/bus/pci/devices/{address}/uevent"
    made.files[path] = made.files[path].replace("DRIVER=nvidia\n", f"DRIVER={driver}\n" if driver else "")


def unbound(driver: str | None) -> Change:
    def change(made: Machine) -> None:
        held_by(made, made.addresses[-1], driver)
        lose(made, len(made.addresses) - 1, file=False)

    return change


def without_gpus(made: Machine) -> None:
    """A container that was given no GPU: no device files, no driver libraries."""
    for path in [path for path in made.files if path.startswith("/dev/nvidia")]:
        del made.files[path]
    made.files.pop("/proc/driver/nvidia/version", None)
    made.nvml = Unreadable("NVML: NVML Shared Library Not Found", "library_not_found")
    made.torch["devices"] = []


def module(made: Machine, version: str) -> None:
    made.files["/proc/driver/nvidia/version"] = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Release\n"


NOT_INSTALLED = {"type": "ModuleNotFoundError", "name": "torch", "message": "No module named 'torch'"}


def no_torch(error: Mapping[str, Any] = NOT_INSTALLED) -> Change:
    def change(made: Machine) -> None:
        made.path_torch = None if error is NOT_INSTALLED else made.path_torch
        made.torch = {"python": "3.12.3", "executable": "/opt/torch/bin/python3", "pynvml": None,
                      "gaps": {"torch": error}}  # fmt: skip

    return change


def cpu_build(made: Machine) -> None:
    for name in ("cudnn", "nccl", "cublas", "cublaslt", "bundled", "loaded", "devices"):
        made.torch.pop(name, None)
    made.torch |= {"torch": "2.11.0+cpu", "cuda": None, "arch_list": []}


def ranks(threads: int) -> Change:
    started = env(
        TORCHELASTIC_RUN_ID="none", LOCAL_WORLD_SIZE="8", WORLD_SIZE="8", LOCAL_RANK="3", OMP_NUM_THREADS=str(threads)
    )
    return every(started, torch(threads=threads))


def loaded(device: int = 0, **conditions: float) -> Change:
    """A GPU was measured under these conditions."""
    measured = replace(row("precision", "throughput", 100.0, f"cuda:{device}"), conditions=conditions)
    return lambda made: made.measurements.append(measured)


def in_v1(quota_us: int = -1) -> Change:
    """Control groups of the first version, with this quota of CPU time (-1 for none) and no limit of memory."""

    def change(made: Machine) -> None:
        folder = "/sys/fs/cgroup/cpu/job"
        made.files |= {
            "/proc/self/cgroup": "4:cpu,cpuacct:/job\n3:memory:/job\n",
            "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{2**63 - 4096}\n",
            f"{folder}/cpu.cfs_quota_us": f"{quota_us}\n",
            f"{folder}/cpu.cfs_period_us": "100000\n",
            f"{folder}/cpu.stat": "nr_periods 100\nnr_throttled 0\n",
        }
        del made.files["/sys/fs/cgroup/cgroup.controllers"]

    return change


def docker(made: Machine) -> None:
    made.files |= {"/.dockerenv": ""}
    made.files.pop("/dev/kmsg", None)
    if made.addresses:
        made.env |= {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}


def limited(made: Machine, cpus: int = 0, memory_gib: int = 0) -> None:
    made.files |= {
        "/proc/self/cgroup": "0::/job\n",
        "/sys/fs/cgroup/job/cgroup.controllers": "cpuset cpu io memory hugetlb pids\n",
        "/sys/fs/cgroup/job/memory.current": f"{1 << 30}\n",
        "/sys/fs/cgroup/job/memory.stat": "anon 0\ninactive_file 0\nactive_file 0\n",
    }
    if cpus:
        made.files |= {
            "/sys/fs/cgroup/job/cpu.max": f"{cpus * 100000} 100000\n",
            "/sys/fs/cgroup/job/cpu.stat": "nr_periods 1000\nnr_throttled 0\nthrottled_usec 0\n",
        }
        made.torch["threads"] = cpus
        made.env["OMP_NUM_THREADS"] = str(cpus)
    if memory_gib:
        made.files["/sys/fs/cgroup/job/memory.max"] = f"{memory_gib << 30}\n"


def kubernetes(made: Machine, cpus: int | None = None, memory_gib: int = 16) -> None:
    """A pod with these limits (0 for none), by default of half the node's CPUs."""
    docker(made)
    del made.files["/.dockerenv"]
    limited(made, made.cpus // 2 if cpus is None else cpus, memory_gib)
    made.shm_gib = 64
    made.env["KUBERNETES_SERVICE_HOST"] = "10.96.0.1"


def given(*indices: int) -> Change:
    """Give this process only some of the GPUs: NVML and torch number them anew, and no other device file opens."""

    def change(made: Machine) -> None:
        others = [index for index in range(len(made.addresses)) if index not in indices]
        made.denied += [f"/dev/nvidia{index}" for index in others]
        made.nvml["devices"] = [made.nvml["devices"][index] for index in indices]
        if isinstance(made.torch, dict) and made.torch.get("devices"):
            sees(*indices)(made)
        made.addresses = [made.addresses[index] for index in indices]

    return change


def unlisted(made: Machine) -> None:
    """The device files that this process may not open are not even there, as in a container by CDI."""
    for path in made.denied:
        del made.files[path]
    made.denied = []


def container(*indices: int) -> Change:
    return every(docker, given(*indices), env(NVIDIA_VISIBLE_DEVICES=",".join(map(str, indices))))


def slurm(made: Machine, gpus: str, cpus: int) -> None:
    count = len(gpus.split(","))
    made.env |= {
        "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_JOB_GPUS": gpus, "SLURM_STEP_GPUS": gpus,
        "SLURM_GPUS_ON_NODE": str(count), "SLURM_CPUS_PER_TASK": str(cpus), "SLURM_CPUS_ON_NODE": str(cpus),
        "SRUN_CPUS_PER_TASK": str(cpus), "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_TASKS_PER_NODE": "1",
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count))),
    }  # fmt: skip
    made.affinity = list(range(cpus))
    made.torch["threads"] = cpus


def job(gpus: str, cpus: int, **variables: str) -> Change:
    return every(lambda made: slurm(made, gpus, cpus), given(*map(int, gpus.split(","))), env(**variables))


def log(made: Machine, *lines: str, hours_ago: float = 1.0) -> None:
    at = int((UPTIME_HOURS - hours_ago) * 3600 * 1e6)
    added = "".join(f"3,{9000 + place},{at + place},-;{line}\n" for place, line in enumerate(lines))
    made.files["/dev/kmsg"] = made.files.get("/dev/kmsg", QUIET_LOG) + added


def short(address: str) -> str:
    """The driver's form of a bus address in its Xid lines, without the function: `0000:3b:00`."""
    return address.rsplit(".", 1)[0]
