"""Machines that are well, each in its own way: none of these may lead to a warning or an error."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from faults.faults_log import TEXTS
from faults.kinds import NO, recovery
from faults.machines import CU126, KINDS, Machine, docker, given, kubernetes, limited, log, machine, short, slurm
from making import row


@dataclass(frozen=True)
class Healthy:
    name: str
    kind: str
    change: Callable[[Machine], Any] = lambda made: None
    source: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"

    def machine(self) -> Machine:
        made = machine(self.kind)
        self.change(made)
        return made


def env(**variables: str) -> Any:
    return lambda made: made.env.update(variables)


def gpus(**answers: Any) -> Any:
    def change(made: Machine) -> None:
        for gpu in made.gpus:
            gpu.update(answers)

    return change


def answers(changed: dict[str, Any]) -> Any:
    return gpus(**changed)


def every(*changes: Any) -> Any:
    def change(made: Machine) -> None:
        for one in changes:
            one(made)

    return change


def xid(number: int, text: str = "", index: int = 0) -> Any:
    def change(made: Machine) -> None:
        log(made, f"NVRM: Xid (PCI:{short(made.addresses[index])}): {number}, {text or TEXTS.get(number, '')}")

    return change


def kernel(*lines: str) -> Any:
    return lambda made: log(made, *(line.format(at=short(made.addresses[0])) for line in lines))


def job(gpus: str, cpus: int) -> Any:
    def change(made: Machine) -> None:
        slurm(made, gpus, cpus)
        given(made, *map(int, gpus.split(",")))

    return change


def neighbours_xid(made: Machine) -> None:
    """The log of the node tells of a GPU that another job was given."""
    address = made.addresses[6]
    job("2", 16)(made)
    log(made, f"NVRM: Xid (PCI:{short(address)}): 79, GPU has fallen off the bus.")


def neighbours_xid_in_a_container(made: Machine) -> None:
    address, text = made.addresses[6], made.files["/dev/kmsg"]
    docker(made)
    given(made, 1)
    made.env["NVIDIA_VISIBLE_DEVICES"] = "1"
    made.files["/dev/kmsg"] = text
    log(made, f"NVRM: Xid (PCI:{short(address)}): 119, {TEXTS[119]}")


def one_of_eight(made: Machine) -> None:
    docker(made)
    given(made, 3)
    made.env["NVIDIA_VISIBLE_DEVICES"] = "3"


def cdi_pod(made: Machine) -> None:
    kubernetes(made)
    given(made, 0, 1)
    made.env["NVIDIA_VISIBLE_DEVICES"] = "void"


def pod_without_gpu(made: Machine) -> None:
    kubernetes(made)
    _no_gpu(made)
    made.env["NVIDIA_VISIBLE_DEVICES"] = "void"


def _no_gpu(made: Machine) -> None:
    from gputune.host import Unreadable

    for path in [path for path in made.files if path.startswith("/dev/nvidia")]:
        del made.files[path]
    made.files.pop("/proc/driver/nvidia/version")
    made.nvml = Unreadable("NVML: NVML Shared Library Not Found", "library_not_found")
    made.torch["devices"] = []


def cpu_job(made: Machine) -> None:
    """A job on a node of a GPU cluster that asked for no GPU."""
    made.env |= {
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_ID": "0",
        "SLURM_GPUS_ON_NODE": "0",
        "SLURM_CPUS_ON_NODE": "16",
        "SLURM_CPUS_PER_TASK": "16",
        "SRUN_CPUS_PER_TASK": "16",
    }


def sees(*indices: int) -> Any:
    def change(made: Machine) -> None:
        made.torch["devices"] = [made.torch["devices"][index] for index in indices]

    return change


def by_uuid(made: Machine) -> None:
    made.env["CUDA_VISIBLE_DEVICES"] = f"{made.gpus[2]['UUID']},{made.gpus[3]['UUID']}"
    sees(2, 3)(made)


def ranks(made: Machine) -> None:
    each = made.cpus // 8
    made.env |= {
        "TORCHELASTIC_RUN_ID": "none",
        "LOCAL_WORLD_SIZE": "8",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "3",
        "OMP_NUM_THREADS": str(each),
    }
    made.torch["threads"] = each


def passed_away(made: Machine) -> None:
    """One GPU is assigned to a virtual machine."""
    address = made.addresses.pop()
    path = f"/sys/bus/pci/devices/{address}/uevent"
    made.files[path] = made.files[path].replace("DRIVER=nvidia", "DRIVER=vfio-pci")
    del made.files[f"/dev/nvidia{len(made.addresses)}"]
    del made.nvml["devices"][-1], made.torch["devices"][-1]


def virtual_functions(made: Machine) -> None:
    for number in range(4, 8):
        folder = f"/sys/bus/pci/devices/0000:1b:00.{number}"
        made.files |= {
            f"{folder}/uevent": f"DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:{made.card.pci}\n",
            f"{folder}/physfn/uevent": "",
        }


def other_cards(made: Machine) -> None:
    """An audio function of the card, a matrox console and an AMD card are no GPUs of NVIDIA's."""
    made.files |= {
        "/sys/bus/pci/devices/0000:1b:00.1/uevent": "DRIVER=snd_hda_intel\nPCI_CLASS=40300\nPCI_ID=10DE:22BA\n",
        "/sys/bus/pci/devices/0000:03:00.0/uevent": "DRIVER=mgag200\nPCI_CLASS=30000\nPCI_ID=102B:0538\n",
        "/sys/bus/pci/devices/0000:04:00.0/uevent": "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:164E\n",
        "/sys/bus/pci/devices/0000:05:00.0/uevent": "DRIVER=nvidia-nvswitch\nPCI_CLASS=68000\nPCI_ID=10DE:22A3\n",
    }


def two_kinds_one_chosen(made: Machine) -> None:
    made.gpus[1] |= {
        "Name": "NVIDIA GeForce GTX 1080",
        "CudaComputeCapability": [6, 1],
        "Architecture": 4,
        "VbiosVersion": "86.04.17.00.80",
    }
    for call in ("MemoryInfo", "MemoryInfo:33554472"):
        made.gpus[1][call] = {**made.gpus[1][call], "total": 8 << 30}
    made.env["CUDA_VISIBLE_DEVICES"] = "0"
    sees(0)(made)


def loaded(**conditions: float) -> Any:
    return lambda made: made.measurements.append(replace(row("precision", "throughput", 100.0), conditions=conditions))


def quota_that_fits(made: Machine) -> None:
    docker(made)
    limited(made, 8, 64)


def compat(made: Machine) -> None:
    """NVIDIA's compatibility package on a data-centre card, which is what it is for."""
    made.nvml["CudaDriverVersion_v2"] = 12040
    made.nvml["DriverVersion"] = "550.90.07"
    gpus(**{"GspFirmwareVersion": "550.90.07", "FieldValues:[230]": {"unreadable": "NVML: Function Not Found"}})(made)
    made.files["/proc/driver/nvidia/version"] = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Release\n"
    made.env["LD_LIBRARY_PATH"] = "/usr/local/cuda-13.0/compat"
    made.files["/usr/local/cuda-13.0/compat/libcuda.so.1"] = ""


def minor_version(made: Machine) -> None:
    made.nvml["CudaDriverVersion_v2"] = 12020
    made.torch |= {"torch": "2.6.0+cu126", "cuda": "12.6", "arch_list": list(CU126)}


def small_shm_few_cpus(made: Machine) -> None:
    docker(made)
    made.affinity, made.torch["threads"], made.shm_gib = [0, 1], 2, 1
    made.cpus, made.physical = 2, 1


def anonymous(made: Machine) -> None:
    docker(made)
    made.user, made.env["HOME"], made.env["USER"] = (1234, None, None), "/tmp", "user"


def apptainer(made: Machine) -> None:
    made.env |= {
        "APPTAINER_CONTAINER": "/images/torch.sif",
        "APPTAINER_NAME": "torch.sif",
        "LD_LIBRARY_PATH": "/.singularity.d/libs",
    }
    made.files |= {"/.singularity.d/libs/libcuda.so.1": "", "/.singularity.d/libs/libnvidia-ml.so.1": ""}


def podman(made: Machine) -> None:
    docker(made)
    del made.files["/.dockerenv"]
    made.files["/run/.containerenv"] = 'engine="podman"\n'


NAMES = {
    "k80": "two halves of one board",
    "wsl": "in WSL",
    "orin": "a Jetson, without NVML",
    "laptop": "an idle laptop",
    "rtx4090": "a desktop with X",
    "cpu": "no GPU at all",
    "recorded_x1": "as recorded",
    "recorded_x8": "as recorded",
}
SAID_WELL = {"state": 3, "status": 0, "cliqueId": 0, "healthMask": 0b10_10_10_10 | 1 << 8 | 1 << 12 | 1 << 14}
HEALTHY = [Healthy(NAMES.get(kind, "as it comes"), kind) for kind in KINDS]
HEALTHY += [
    Healthy("a container with all GPUs", "h100", docker),
    Healthy("a container with one of eight", "h100", one_of_eight, "NVIDIA Container Toolkit, NVIDIA_VISIBLE_DEVICES"),
    Healthy("a container by podman", "a100_pcie", podman),
    Healthy("a container by Apptainer", "a100_sxm", apptainer),
    Healthy("a container with a quota that torch knows", "l40s", quota_that_fits),
    Healthy("a container for a user without a name, with USER", "l4", anonymous),
    Healthy("a small container with a /dev/shm to match", "t4", small_shm_few_cpus),
    Healthy("a pod with limits", "h200_x4", kubernetes),
    Healthy("a pod by CDI with two of eight", "h100", cdi_pod,
        "Kubernetes device plugin, CDI: NVIDIA_VISIBLE_DEVICES=void"),
    Healthy("a pod that asked for no GPU on a node with GPUs", "a100_sxm", pod_without_gpu,
        "Kubernetes device plugin: void"),
    Healthy("a Slurm job with one of eight", "a100_sxm", job("3", 16)),
    Healthy("a Slurm job with two of eight", "h100", job("0,1", 24)),
    Healthy("a Slurm job with all eight", "h200_x8", lambda made: slurm(made, "0,1,2,3,4,5,6,7", made.cpus)),
    Healthy("a Slurm job of which only the count of GPUs is known", "l40s",
        lambda made: (slurm(made, "0,1,2,3", 64), made.env.pop("SLURM_JOB_GPUS"), made.env.pop("SLURM_STEP_GPUS")),
        "Slurm: SLURM_GPUS_ON_NODE is a count"),
    Healthy("a Slurm job without a GPU", "cpu", cpu_job, "Slurm: SLURM_GPUS_ON_NODE=0"),
    Healthy("eight ranks by torchrun", "h100", ranks),
    Healthy("eight expected and there", "b200", lambda made: setattr(made, "expected", 8)),
    Healthy("one required and there", "h200_x1", lambda made: (setattr(made, "required", True),
        setattr(made, "expected", 1))),
    Healthy("none expected and none there", "cpu", lambda made: setattr(made, "expected", 0)),
    Healthy("two GPUs chosen by number", "h200_x4", every(env(CUDA_VISIBLE_DEVICES="2,3"), sees(2, 3))),
    Healthy("two GPUs chosen by UUID", "h100", by_uuid),
    Healthy("a comma behind the last number", "rtx3090", every(env(CUDA_VISIBLE_DEVICES="0,1,"))),
    Healthy("a second card of another kind, which was not chosen", "rtx3090", two_kinds_one_chosen),
    Healthy("one GPU is a virtual machine's", "l40s", passed_away, "vfio-pci"),
    Healthy("virtual functions for virtual machines", "a100_pcie", virtual_functions, "SR-IOV"),
    Healthy("other PCI devices beside the GPU", "rtx6000ada", other_cards),
    Healthy("NVSwitches on the bus", "h100", other_cards),
    Healthy("the fabric says of each field that it is well", "h100", gpus(GpuFabricInfoV=SAID_WELL),
        "NVML_GPU_FABRIC_HEALTH_MASK_*: FALSE is 2, connected and assigned are 1"),
    Healthy("the fabric says of each field that it is well", "gb200", gpus(GpuFabricInfoV=SAID_WELL),
        "NVML_GPU_FABRIC_HEALTH_MASK_*"),
    Healthy("the fabric reports nothing", "b200", gpus(GpuFabricInfoV={"state": 3, "status": 0, "healthMask": 0})),
    Healthy("the power cap holds the clock", "h100", gpus(CurrentClocksEventReasons=4),
        "NVML, software power cap is normal"),
    Healthy("sync boost holds the clock", "v100", gpus(CurrentClocksEventReasons=0x10)),
    Healthy("display clocks", "rtx4090", gpus(CurrentClocksEventReasons=0x101)),
    Healthy("an older driver with the older name of the reasons", "a100_sxm",
        gpus(CurrentClocksEventReasons={"unreadable": "NVML: Function Not Found"})),
    Healthy("a driver without the recovery action", "h100",
        answers({"FieldValues:[230]": {"unreadable": "NVML: Function Not Found"}})),
    Healthy("a GPU without the recovery action", "l40s", answers({"FieldValues:[230]": [{**recovery(0)[0],
        "nvmlReturn": 3}]})),
    Healthy("no GSP firmware in use", "a100_pcie", gpus(GspFirmwareVersion=NO)),
    Healthy("calls that nobody recorded", "h200_x8", lambda made: [gpu.pop(call) for gpu in made.gpus
        for call in ("FieldValues:[230]", "VbiosVersion", "GspFirmwareVersion", "NumGpuCores", "DisplayActive",
        "GraphicsRunningProcesses", "DefaultEccMode")]),
    Healthy("device files that nobody recorded", "h100", lambda made: [made.files.pop(name)
        for name in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/proc/modules")]),
    Healthy("rows that were remapped", "h100", gpus(RemappedRows=[2, 1, 0, 0]), "NVIDIA, row remapping: done"),
    Healthy("errors of an earlier boot", "a100_sxm", answers({"TotalEccErrors:1,1": 4}), "NVML, aggregate count"),
    Healthy("no ECC on workstation cards", "rtx6000ada", answers({"EccMode": [0, 0]}), "nvidia-smi manual, ECC Mode"),
    Healthy("Xid 63", "h100", xid(63, "pid=77, Row Remapper: New row marked for remapping, reset gpu to activate."),
        "Xid catalogue: IGNORE"),
    Healthy("Xid 92", "v100", xid(92, "High single-bit ECC error rate"), "Xid catalogue: IGNORE"),
    Healthy("Xid 106", "b200", xid(106, "SMBPBI Test Message"), "Xid catalogue: IGNORE"),
    Healthy("Xid 121", "gh200", xid(121, "C2C Error"), "Xid catalogue: IGNORE"),
    Healthy("Xid 162", "gb200", xid(162, "Power Smoothing HW Circuitry capability reengaged"),
        "Xid catalogue: reengaged"),
    Healthy("Xid 154, none", "h100",
        xid(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"), "Xid catalogue: 154"),
    Healthy("Xid 119, which a reset has mended", "l40s", every(xid(119),
        xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
        xid(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")), "Xid catalogue: 154"),
    Healthy("a neighbour's Xid in a job with one GPU", "h100", neighbours_xid),
    Healthy("a neighbour's Xid in a container with one GPU", "a100_sxm", neighbours_xid_in_a_container),
    Healthy("corrected PCIe errors", "h100",
        kernel("nvidia {at}.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"),
        "Linux, AER: corrected by hardware"),
    Healthy("a corrected machine check", "l4",
        kernel("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: 8c00000f010000c1"),
        "Linux, x86: bit 61, UC, is 0"),
    Healthy("the driver's small talk", "a100_sxm",
        kernel("NVRM: Persistence mode is deprecated and will be removed in a future release.",
        "nvidia-nvswitch0: open (major=510)", "nvidia-uvm: Loaded the UVM driver, major device number 508.",
        "NVRM: loading NVIDIA UNIX Open Kernel Module")),
    Healthy("NCCL warns", "h100", env(NCCL_DEBUG="WARN"), "NCCL, Environment Variables"),
    Healthy("NCCL tells its version", "l40s", env(NCCL_DEBUG="VERSION"), "NCCL, Environment Variables"),
    Healthy("NCCL's switches are at 0", "a100_sxm", env(NCCL_P2P_DISABLE="0", NCCL_SHM_DISABLE="0",
        NCCL_IB_DISABLE="0"), "NCCL, Environment Variables"),
    Healthy("NCCL's interfaces are named", "b200", env(NCCL_SOCKET_IFNAME="eth0", NCCL_IB_HCA="mlx5",
        NCCL_VERSION="2.28.3-1")),
    Healthy("NVIDIA's image's library path", "h200_x1", lambda made: (docker(made),
        env(LD_LIBRARY_PATH="/usr/local/nvidia/lib64:/usr/local/nvidia/lib")(made))),
    Healthy("a compatibility package on a data-centre card", "h100", compat, "NVIDIA, CUDA Compatibility"),
    Healthy("a driver of the same major CUDA", "l4", minor_version, "NVIDIA, CUDA Compatibility, minor versions"),
    Healthy("debugging is switched off in words", "rtx3090", env(CUDA_LAUNCH_BLOCKING="0",
        PYTORCH_NO_CUDA_MEMORY_CACHING="0", PYTORCH_USE_CUDA_DSA="0")),
    Healthy("a load at the power cap", "h100", loaded(throttle_reasons=4.0, pcie_generation=5.0, gpu_processes=1.0,
        other_cpus=0.1)),
    Healthy("a browser and a game on a desktop", "rtx4090",
        lambda made: made.gpus[0].update({"GraphicsRunningProcesses": [*made.gpus[0]["GraphicsRunningProcesses"],
        {"pid": 3000, "usedGpuMemory": 2 << 30}], "MemoryInfo:33554472": {**made.gpus[0]["MemoryInfo:33554472"],
        "used": 3300 << 20}}), "NVML, GraphicsRunningProcesses"),
    Healthy("a laptop that sleeps in PCIe generation 1", "laptop", gpus(CurrPcieLinkGeneration=1, CurrPcieLinkWidth=8)),
    Healthy("a hybrid laptop with fewer lanes at rest", "laptop", gpus(CurrPcieLinkWidth=4)),
    Healthy("no root, so no kernel log", "a10g", lambda made: (made.files.pop("/dev/kmsg"),
        setattr(made, "user", (1000, "ann", "/home/ann")), made.env.update(HOME="/home/ann"),
        made.files.update({"/home/ann/x": ""}))),
    Healthy("cards of one kind with unlike serial numbers and heat", "h100",
        lambda made: [gpu.update({"Temperature:0": 30 + 3 * index, "PowerUsage": 80_000 + 5_000 * index}) for index,
        gpu in enumerate(made.gpus)]),
]  # fmt: skip


# Healthy in less usual ways.
def by_slurm_task(made: Machine) -> None:
    """One of eight tasks, each of which Slurm bound to one of the step's eight GPUs."""
    slurm(made, "0,1,2,3,4,5,6,7", 16)
    made.env |= {"SLURM_GPUS_PER_TASK": "1", "SLURM_NTASKS": "8", "SLURM_STEP_TASKS_PER_NODE": "8",
        "SLURM_TASKS_PER_NODE": "8", "CUDA_VISIBLE_DEVICES": "0",
                 "SLURM_GPU_BIND": "per_task:1"}  # fmt: skip
    made.affinity = list(range(96, 112))
    given(made, 4)


def cdi_of_podman(made: Machine) -> None:
    """`podman run --device nvidia.com/gpu=3`: the image's NVIDIA_VISIBLE_DEVICES=all means nothing."""
    podman(made)
    given(made, 3)
    made.denied = []
    made.files = {
        name: text
        for name, text in made.files.items()
        if name not in {f"/dev/nvidia{n}" for n in (0, 1, 2, 4, 5, 6, 7)}
    }


def pod_of_one_with_all(made: Machine) -> None:
    """A pod with one GPU by CDI, of an image that sets NVIDIA_VISIBLE_DEVICES=all."""
    kubernetes(made)
    given(made, 5)
    made.env["NVIDIA_VISIBLE_DEVICES"] = "all"
    made.denied = []
    made.files = {
        name: text
        for name, text in made.files.items()
        if name not in {f"/dev/nvidia{n}" for n in (0, 1, 2, 3, 4, 6, 7)}
    }


def pod_by_uuid(made: Machine) -> None:
    kubernetes(made)
    made.env["NVIDIA_VISIBLE_DEVICES"] = f"{made.gpus[1]['UUID']},{made.gpus[2]['UUID']}"
    given(made, 1, 2)


def bridged(made: Machine) -> None:
    for gpu in made.gpus:
        gpu.update({f"NvLinkState:{link}": 1 for link in range(4)})
        gpu.update({"NvLinkState:4": {"unreadable": "NVML: Invalid Argument"}, "NvLinkRemoteDeviceType:0": 0})


def nvl(made: Machine) -> None:
    """H200 NVL: four cards with bridges between them, and no switch."""
    gpus(GpuFabricInfoV={"state": 0, "status": 0, "healthMask": 0}, Name="NVIDIA H200 NVL")(made)
    for gpu, seen in zip(made.gpus, made.torch["devices"], strict=True):
        gpu["NvLinkRemoteDeviceType:0"] = 0
        seen["name"] = "NVIDIA H200 NVL"


def two_makers(made: Machine) -> None:
    made.gpus[1] |= {
        "VbiosVersion": "94.02.4B.00.0B",
        "PowerManagementDefaultLimit": 370_000,
        "PowerManagementLimit": 370_000,
        "EnforcedPowerLimit": 370_000,
        "MaxClockInfo:1": 2130,
    }


def browser_with_cuda(made: Machine) -> None:
    """nvidia-smi shows type C+G for it: one process that draws and computes."""
    both = {"pid": 2002, "usedGpuMemory": 700 << 20}
    made.gpus[0]["ComputeRunningProcesses"] = [both]


def windows_desktop(made: Machine) -> None:
    """Windows draws on the card, and WSL sees none of its processes."""
    gpu = made.gpus[0]
    gpu |= {"DisplayActive": 1, "MemoryInfo:33554472": {**gpu["MemoryInfo:33554472"], "used": 1600 << 20}}
    gpu |= {"ComputeRunningProcesses": [], "GraphicsRunningProcesses": []}


def v1_without_limits(made: Machine) -> None:
    made.files |= {
        "/proc/self/cgroup": "4:cpu,cpuacct:/\n3:memory:/\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "/sys/fs/cgroup/cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\n",
    }  # fmt: skip
    del made.files["/sys/fs/cgroup/cgroup.controllers"]


def no_quota(made: Machine) -> None:
    docker(made)
    limited(made, memory_gib=256)
    made.files |= {
        "/sys/fs/cgroup/job/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/job/cpu.stat": "nr_periods 0\nnr_throttled 0\n",
    }


def reversed_order(made: Machine) -> None:
    made.torch["devices"].reverse()


def permission(made: Machine) -> None:
    """NVML lists two GPUs that this job may not ask about: another job's."""
    for index in (2, 3):
        made.gpus[index] = {call: {"unreadable": "NVML: Insufficient Permissions"} for call in made.gpus[index]}
        made.denied.append(f"/dev/nvidia{index}")
    made.torch["devices"] = made.torch["devices"][:2]


def cpu_job_on_a_gpu_node(made: Machine) -> None:
    """Slurm's cgroup forbids all the node's GPUs to a job that asked for none."""
    from gputune.host import Unreadable

    cpu_job(made)
    made.affinity, made.torch["threads"], made.torch["devices"] = list(range(16)), 16, []
    made.denied += [path for path in made.files if path.startswith("/dev/nvidia")]
    made.nvml = Unreadable("NVML: Insufficient Permissions", "no_permission")


HEALTHY += [
    Healthy("a job without a GPU on a node with eight", "a100_sxm", cpu_job_on_a_gpu_node, "Slurm, ConstrainDevices"),
    Healthy("one of eight tasks, with one of eight GPUs", "h100", by_slurm_task, "Slurm, srun, --gpus-per-task"),
    Healthy("a container by CDI with one of eight, of an image that says all", "h100", cdi_of_podman,
        "NVIDIA Container Toolkit, CDI: --device nvidia.com/gpu=3"),
    Healthy("a pod with one of eight, of an image that says all", "a100_sxm", pod_of_one_with_all,
        "k8s-device-plugin #203: base images bake it in"),
    Healthy("a pod with two of eight by UUID", "b200", pod_by_uuid, "NVIDIA device plugin, DEVICE_ID_STRATEGY=uuid"),
    Healthy("two cards with a bridge", "rtx3090", bridged),
    Healthy("four cards with bridges and no switch", "h200_x4", nvl),
    Healthy("two cards of two makers", "rtx3090", two_makers, "board partners' VBIOS, clocks and power differ"),
    Healthy("a browser that draws and computes", "rtx4090", browser_with_cuda, "nvidia-smi manual, process type C+G"),
    Healthy("the desktop of Windows", "wsl", windows_desktop,
        "NVIDIA, CUDA on WSL: processes of Windows are not listed"),
    Healthy("a power limit above the default", "rtx4090", gpus(PowerManagementLimit=600_000,
        EnforcedPowerLimit=600_000)),
    Healthy("an application clock above the default", "v100", answers({"DefaultApplicationsClock:1": 1312})),
    Healthy("a v1 hierarchy without limits", "a100_pcie", v1_without_limits),
    Healthy("a container without a quota", "l40s", no_quota),
    Healthy("torch numbers the GPUs in another order", "h100", reversed_order, "CUDA_DEVICE_ORDER=FASTEST_FIRST"),
    Healthy("one call that answers an unknown error", "h100",
        lambda made: made.gpus[5].update({"Temperature:0": {"unreadable": "NVML: Unknown Error"}}),
        "UNKNOWN, and no fault by itself"),
    Healthy("a laptop whose brand cannot be read", "laptop", gpus(Brand={"unreadable": "NVML: Unknown Error"}),
        "a complaint needs what was read"),
    Healthy("the PCIe link sleeps", "h100", gpus(CurrPcieLinkGeneration=1)),
    Healthy("ECC off as a workstation card is shipped", "rtxpro6000",
        answers({"EccMode": [0, 0], "DefaultEccMode": [0], "TotalEccErrors:1,0": NO, "TotalEccErrors:1,1": NO})),
    Healthy("GPUs of another job that NVML lists and does not tell of", "l40s", permission, "NVML_ERROR_NO_PERMISSION"),
]  # fmt: skip
