"""Machines that are well, each in its own way: none of these may lead to a warning or an error."""

# ruff: noqa: F403, F405 - the changes are the words of this table
from typing import Any

from faults.changes import *
from faults.fault import Fault
from faults.faults_log import TEXTS
from faults.kinds import NO, recovery
from faults.machines import CU126, KINDS, Machine

from gputune.host import Unreadable


def well(name: str, kind: str, change: Change = lambda made: None, source: str = "") -> Fault:
    return Fault(name, kind, change, (), source)


def xid(number: int, text: str = "", index: int = 0) -> Any:
    def change(made: Machine) -> None:
        log(made, f"NVRM: Xid (PCI:{short(made.addresses[index])}): {number}, {text or TEXTS.get(number, '')}")

    return change


def kernel(*lines: str) -> Any:
    return lambda made: log(made, *(line.format(at=short(made.addresses[0])) for line in lines))


def neighbours_xid(made: Machine) -> None:
    """The log of the node tells of a GPU that another job was given."""
    address = made.addresses[6]
    job("2", 16)(made)
    log(made, f"NVRM: Xid (PCI:{short(address)}): 79, GPU has fallen off the bus.")


def neighbours_xid_in_a_container(made: Machine) -> None:
    address = made.addresses[6]
    container(1)(made)
    log(made, f"NVRM: Xid (PCI:{short(address)}): 119, {TEXTS[119]}")


def cpu_job(made: Machine) -> None:
    made.env |= {
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_ID": "0",
        "SLURM_GPUS_ON_NODE": "0",
        "SLURM_CPUS_ON_NODE": "16",
        "SLURM_CPUS_PER_TASK": "16",
        "SRUN_CPUS_PER_TASK": "16",
    }


def by_uuid(made: Machine) -> None:
    visible(f"{made.gpus[2]['UUID']},{made.gpus[3]['UUID']}", 2, 3)(made)


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


def quota_that_fits(made: Machine) -> None:
    docker(made)
    limited(made, 8, 64)


def compat(made: Machine) -> None:
    """NVIDIA's compatibility package on a data-centre card, which is what it is for."""
    made.nvml["CudaDriverVersion_v2"] = 12040
    made.nvml["DriverVersion"] = "550.90.07"
    of_all({"GspFirmwareVersion": "550.90.07", "FieldValues:[230]": {"unreadable": "NVML: Function Not Found"}})(made)
    module(made, "550.90.07")
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
HEALTHY = [well(NAMES.get(kind, "as it comes"), kind) for kind in KINDS]
HEALTHY += [
    well("a container with all GPUs", "h100", docker),
    well("a container with one of eight", "h100", container(3), "NVIDIA Container Toolkit, NVIDIA_VISIBLE_DEVICES"),
    well("a container by podman", "a100_pcie", podman),
    well("a container by Apptainer", "a100_sxm", apptainer),
    well("a container with a quota that torch knows", "l40s", quota_that_fits),
    well("a container for a user without a name, with USER", "l4", anonymous),
    well("a small container with a /dev/shm to match", "t4", small_shm_few_cpus),
    well("a pod with limits", "h200_x4", kubernetes),
    well("a pod by CDI with two of eight", "h100",
        every(kubernetes, given(0, 1), env(NVIDIA_VISIBLE_DEVICES="void")),
        "Kubernetes device plugin, CDI: NVIDIA_VISIBLE_DEVICES=void"),
    well("a pod that asked for no GPU on a node with GPUs", "a100_sxm",
        every(kubernetes, without_gpus, env(NVIDIA_VISIBLE_DEVICES="void")),
        "Kubernetes device plugin: void"),
    well("a Slurm job with one of eight", "a100_sxm", job("3", 16)),
    well("a Slurm job with two of eight", "h100", job("0,1", 24)),
    well("a Slurm job with all eight", "h200_x8", lambda made: slurm(made, "0,1,2,3,4,5,6,7", made.cpus)),
    well("a Slurm job of which only the count of GPUs is known", "l40s",
        lambda made: (slurm(made, "0,1,2,3", 64), made.env.pop("SLURM_JOB_GPUS"), made.env.pop("SLURM_STEP_GPUS")),
        "Slurm: SLURM_GPUS_ON_NODE is a count"),
    well("a Slurm job without a GPU", "cpu", cpu_job, "Slurm: SLURM_GPUS_ON_NODE=0"),
    well("eight ranks by torchrun", "h100", ranks(24)),
    well("eight expected and there", "b200", having(expected=8)),
    well("one required and there", "h200_x1", having(required=True, expected=1)),
    well("none expected and none there", "cpu", having(expected=0)),
    well("two GPUs chosen by number", "h200_x4", visible("2,3", 2, 3)),
    well("two GPUs chosen by UUID", "h100", by_uuid),
    well("a comma behind the last number", "rtx3090", env(CUDA_VISIBLE_DEVICES="0,1,")),
    well("a second card of another kind, which was not chosen", "rtx3090", two_kinds_one_chosen),
    well("one GPU is a virtual machine's", "l40s", unbound("vfio-pci"), "vfio-pci"),
    well("virtual functions for virtual machines", "a100_pcie", virtual_functions, "SR-IOV"),
    well("other PCI devices beside the GPU", "rtx6000ada", other_cards),
    well("NVSwitches on the bus", "h100", other_cards),
    well("the fabric says of each field that it is well", "h100", of_all(GpuFabricInfoV=SAID_WELL),
        "NVML_GPU_FABRIC_HEALTH_MASK_*: FALSE is 2, connected and assigned are 1"),
    well("the fabric says of each field that it is well", "gb200", of_all(GpuFabricInfoV=SAID_WELL),
        "NVML_GPU_FABRIC_HEALTH_MASK_*"),
    well("the fabric reports nothing", "b200", of_all(GpuFabricInfoV={"state": 3, "status": 0, "healthMask": 0})),
    well("the power cap holds the clock", "h100", of_all(CurrentClocksEventReasons=4),
        "NVML, software power cap is normal"),
    well("sync boost holds the clock", "v100", of_all(CurrentClocksEventReasons=0x10)),
    well("display clocks", "rtx4090", of_all(CurrentClocksEventReasons=0x101)),
    well("an older driver with the older name of the reasons", "a100_sxm",
        of_all(CurrentClocksEventReasons={"unreadable": "NVML: Function Not Found"})),
    well("a driver without the recovery action", "h100",
        of_all({"FieldValues:[230]": {"unreadable": "NVML: Function Not Found"}})),
    well("a GPU without the recovery action", "l40s", of_all({"FieldValues:[230]": [{**recovery(0)[0],
        "nvmlReturn": 3}]})),
    well("no GSP firmware in use", "a100_pcie", of_all(GspFirmwareVersion=NO)),
    well("calls that nobody recorded", "h200_x8", lambda made: [gpu.pop(call) for gpu in made.gpus
        for call in ("FieldValues:[230]", "VbiosVersion", "GspFirmwareVersion", "NumGpuCores", "DisplayActive",
        "GraphicsRunningProcesses", "DefaultEccMode")]),
    well("device files that nobody recorded", "h100", lambda made: [made.files.pop(name)
        for name in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/proc/modules")]),
    well("rows that were remapped", "h100", of_all(RemappedRows=[2, 1, 0, 0]), "NVIDIA, row remapping: done"),
    well("errors of an earlier boot", "a100_sxm", of_all({"TotalEccErrors:1,1": 4}), "NVML, aggregate count"),
    well("no ECC on workstation cards", "rtx6000ada", of_all({"EccMode": [0, 0]}), "nvidia-smi manual, ECC Mode"),
    well("Xid 63", "h100", xid(63, "pid=77, Row Remapper: New row marked for remapping, reset gpu to activate."),
        "Xid catalogue: IGNORE"),
    well("Xid 92", "v100", xid(92, "High single-bit ECC error rate"), "Xid catalogue: IGNORE"),
    well("Xid 106", "b200", xid(106, "SMBPBI Test Message"), "Xid catalogue: IGNORE"),
    well("Xid 121", "gh200", xid(121, "C2C Error"), "Xid catalogue: IGNORE"),
    well("Xid 162", "gb200", xid(162, "Power Smoothing HW Circuitry capability reengaged"),
        "Xid catalogue: reengaged"),
    well("Xid 154, none", "h100",
        xid(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"), "Xid catalogue: 154"),
    well("Xid 119, which a reset has mended", "l40s", every(xid(119),
        xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
        xid(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")), "Xid catalogue: 154"),
    well("a neighbour's Xid in a job with one GPU", "h100", neighbours_xid),
    well("a neighbour's Xid in a container with one GPU", "a100_sxm", neighbours_xid_in_a_container),
    well("corrected PCIe errors", "h100",
        kernel("nvidia {at}.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"),
        "Linux, AER: corrected by hardware"),
    well("a corrected machine check", "l4",
        kernel("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: 8c00000f010000c1"),
        "Linux, x86: bit 61, UC, is 0"),
    well("the driver's small talk", "a100_sxm",
        kernel("NVRM: Persistence mode is deprecated and will be removed in a future release.",
        "nvidia-nvswitch0: open (major=510)", "nvidia-uvm: Loaded the UVM driver, major device number 508.",
        "NVRM: loading NVIDIA UNIX Open Kernel Module")),
    well("NCCL warns", "h100", env(NCCL_DEBUG="WARN"), "NCCL, Environment Variables"),
    well("NCCL tells its version", "l40s", env(NCCL_DEBUG="VERSION"), "NCCL, Environment Variables"),
    well("NCCL's switches are at 0", "a100_sxm", env(NCCL_P2P_DISABLE="0", NCCL_SHM_DISABLE="0",
        NCCL_IB_DISABLE="0"), "NCCL, Environment Variables"),
    well("NCCL's interfaces are named", "b200", env(NCCL_SOCKET_IFNAME="eth0", NCCL_IB_HCA="mlx5",
        NCCL_VERSION="2.28.3-1")),
    well("NVIDIA's image's library path", "h200_x1", lambda made: (docker(made),
        env(LD_LIBRARY_PATH="/usr/local/nvidia/lib64:/usr/local/nvidia/lib")(made))),
    well("a compatibility package on a data-centre card", "h100", compat, "NVIDIA, CUDA Compatibility"),
    well("a driver of the same major CUDA", "l4", minor_version, "NVIDIA, CUDA Compatibility, minor versions"),
    well("debugging is switched off in words", "rtx3090", env(CUDA_LAUNCH_BLOCKING="0",
        PYTORCH_NO_CUDA_MEMORY_CACHING="0", PYTORCH_USE_CUDA_DSA="0")),
    well("a load at the power cap", "h100", loaded(throttle_reasons=4.0, pcie_generation=5.0, gpu_processes=1.0,
        other_cpus=0.1)),
    well("a browser and a game on a desktop", "rtx4090",
        lambda made: made.gpus[0].update({"GraphicsRunningProcesses": [*made.gpus[0]["GraphicsRunningProcesses"],
        {"pid": 3000, "usedGpuMemory": 2 << 30}], "MemoryInfo:33554472": {**made.gpus[0]["MemoryInfo:33554472"],
        "used": 3300 << 20}}), "NVML, GraphicsRunningProcesses"),
    well("a laptop that sleeps in PCIe generation 1", "laptop", of_all(CurrPcieLinkGeneration=1, CurrPcieLinkWidth=8)),
    well("a hybrid laptop with fewer lanes at rest", "laptop", of_all(CurrPcieLinkWidth=4)),
    well("no root, so no kernel log", "a10g", lambda made: (made.files.pop("/dev/kmsg"),
        setattr(made, "user", (1000, "ann", "/home/ann")), made.env.update(HOME="/home/ann"),
        made.files.update({"/home/ann/x": ""}))),
    well("cards of one kind with unlike serial numbers and heat", "h100",
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
    given(4)(made)


def pod_by_uuid(made: Machine) -> None:
    kubernetes(made)
    made.env["NVIDIA_VISIBLE_DEVICES"] = f"{made.gpus[1]['UUID']},{made.gpus[2]['UUID']}"
    given(1, 2)(made)


def bridged(made: Machine) -> None:
    for gpu in made.gpus:
        gpu.update({f"NvLinkState:{link}": 1 for link in range(4)})
        gpu.update({"NvLinkState:4": {"unreadable": "NVML: Invalid Argument"}, "NvLinkRemoteDeviceType:0": 0})


def nvl(made: Machine) -> None:
    of_all(GpuFabricInfoV={"state": 0, "status": 0, "healthMask": 0}, Name="NVIDIA H200 NVL")(made)
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


def no_quota(made: Machine) -> None:
    docker(made)
    limited(made, memory_gib=256)
    made.files |= {
        "/sys/fs/cgroup/job/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/job/cpu.stat": "nr_periods 0\nnr_throttled 0\n",
    }


def permission(made: Machine) -> None:
    """NVML lists two GPUs that this job may not ask about: another job's."""
    for index in (2, 3):
        made.gpus[index] = {call: {"unreadable": "NVML: Insufficient Permissions"} for call in made.gpus[index]}
        made.denied.append(f"/dev/nvidia{index}")
    made.torch["devices"] = made.torch["devices"][:2]


def cpu_job_on_a_gpu_node(made: Machine) -> None:
    """Slurm's cgroup forbids all the node's GPUs to a job that asked for none."""
    cpu_job(made)
    made.affinity, made.torch["threads"], made.torch["devices"] = list(range(16)), 16, []
    made.denied += [path for path in made.files if path.startswith("/dev/nvidia")]
    made.nvml = Unreadable("NVML: Insufficient Permissions", "no_permission")


HEALTHY += [
    well("a job without a GPU on a node with eight", "a100_sxm", cpu_job_on_a_gpu_node, "Slurm, ConstrainDevices"),
    well("one of eight tasks, with one of eight GPUs", "h100", by_slurm_task, "Slurm, srun, --gpus-per-task"),
    well("a container by CDI with one of eight, of an image that says all", "h100", every(podman, given(3), unlisted),
        "NVIDIA Container Toolkit, CDI: --device nvidia.com/gpu=3"),
    well("a pod with one of eight, of an image that says all", "a100_sxm",
        every(kubernetes, given(5), env(NVIDIA_VISIBLE_DEVICES="all"), unlisted),
        "k8s-device-plugin #203: base images bake it in"),
    well("a pod with two of eight by UUID", "b200", pod_by_uuid, "NVIDIA device plugin, DEVICE_ID_STRATEGY=uuid"),
    well("two cards with a bridge", "rtx3090", bridged),
    well("four cards with bridges and no switch", "h200_x4", nvl),
    well("two cards of two makers", "rtx3090", two_makers, "board partners' VBIOS, clocks and power differ"),
    well("a browser that draws and computes", "rtx4090", browser_with_cuda, "nvidia-smi manual, process type C+G"),
    well("the desktop of Windows", "wsl", windows_desktop,
        "NVIDIA, CUDA on WSL: processes of Windows are not listed"),
    well("a power limit above the default", "rtx4090", of_all(PowerManagementLimit=600_000,
        EnforcedPowerLimit=600_000)),
    well("an application clock above the default", "v100", of_all({"DefaultApplicationsClock:1": 1312})),
    well("a v1 hierarchy without limits", "a100_pcie", in_v1()),
    well("a container without a quota", "l40s", no_quota),
    well("torch numbers the GPUs in another order", "h100", sees(*reversed(range(8))),
        "CUDA_DEVICE_ORDER=FASTEST_FIRST"),
    well("one call that answers an unknown error", "h100",
        lambda made: made.gpus[5].update({"Temperature:0": {"unreadable": "NVML: Unknown Error"}}),
        "UNKNOWN, and no fault by itself"),
    well("a laptop whose brand cannot be read", "laptop", of_all(Brand={"unreadable": "NVML: Unknown Error"}),
        "a complaint needs what was read"),
    well("the PCIe link sleeps", "h100", of_all(CurrPcieLinkGeneration=1)),
    well("ECC off as a workstation card is shipped", "rtxpro6000",
        of_all({"EccMode": [0, 0], "DefaultEccMode": [0], "TotalEccErrors:1,0": NO, "TotalEccErrors:1,1": NO})),
    well("GPUs of another job that NVML lists and does not tell of", "l40s", permission, "NVML_ERROR_NO_PERMISSION"),
]  # fmt: skip
