"""Faults of several GPUs at once, in jobs and containers that number them anew, and the less usual forms of others."""

# ruff: noqa: F403, F405 - the changes are the words of this table
from typing import Any

from faults.changes import *
from faults.fault import Expect, Fault
from faults.faults_counts import TOOLKIT, unusable
from faults.faults_gpu import MEMORY, NVML, every_call
from faults.faults_log import CATALOGUE, KERNEL, TEXTS
from faults.faults_torch import LEAVES
from faults.kinds import NO, recovery
from faults.machines import Machine

from gputune.host import Unreadable

CUDA = "CUDA Runtime API, cudaError"


def fault(
    name: str,
    kind: str,
    inject: Any,
    source: str,
    *expected: Expect,
    also: tuple[str, ...] = (),
    touches: tuple[str, ...] = ("*",),
) -> Fault:
    return Fault(name, kind, inject, expected, source, also, touches, "more")


def gpus(check: str, severity: str, *indices: int) -> tuple[Expect, ...]:
    return tuple(Expect(check, severity, (f"GPU {index}",)) for index in indices)


def some(changed: dict[int, dict[str, Any]]) -> Any:
    def inject(made: Machine) -> None:
        for index, answers in changed.items():
            made.gpus[index].update(answers)

    return inject


EVERY = [
    fault("one NVLink down on each GPU", "h100", of_all({"NvLinkState:4": 0}),
        "NVIDIA, health validation, nvlink_active", *gpus("nvlink_down", "WARNING", *range(8))),
    fault("a link between two GPUs down, at both ends", "v100",
        some({1: {"NvLinkState:2": 0}, 3: {"NvLinkState:5": 0}}), "NVIDIA, health validation, nvlink_active",
        *gpus("nvlink_down", "ERROR", 1, 3)),
    fault("persistence mode off on each GPU", "a100_sxm", of_all({"PersistenceMode": 0}),
        "NVIDIA, Driver Persistence", *gpus("persistence_mode", "WARNING", *range(8))),
    fault("a power cap on each GPU", "h100", of_all({"PowerManagementLimit": 500_000,
        "EnforcedPowerLimit": 500_000}), NVML + ", power management limit", *gpus("power_limit", "WARNING", *range(8))),
    fault("ECC off on each GPU", "l40s", of_all({"EccMode": [0, 0], "TotalEccErrors:1,0": NO,
        "TotalEccErrors:1,1": NO}), "nvidia-smi manual, ECC Mode", *gpus("ecc_mode", "WARNING", *range(4))),
    fault("each GPU waits for the fabric", "b200", of_all({"GpuFabricInfoV": {"state": 1, "status": 0,
        "healthMask": 0}}), "Fabric Manager User Guide", *gpus("fabric_manager", "ERROR", *range(8))),
    fault("the machine is hot", "h200_x8", of_all({"Temperature:0": 88}), NVML + ", slowdown threshold",
        *gpus("temperature", "WARNING", *range(8))),
    fault("a power brake on each GPU", "b200", of_all({"CurrentClocksEventReasons": 0x80}),
        NVML + ", nvmlClocksEventReasons", *gpus("throttling", "WARNING", *range(8))),
    fault("two GPUs with ECC errors", "h100", some({1: {"TotalEccErrors:1,0": 1}, 6: {"TotalEccErrors:1,0": 9}}),
        MEMORY, *gpus("ecc_errors", "ERROR", 1, 6)),
    fault("two GPUs lost", "a100_sxm", lambda made: (every_call("GPU is lost", 2)(made),
        every_call("GPU is lost", 4)(made)), NVML + ", nvmlReturn_t", *gpus("gpu_lost", "ERROR", 2, 4)),
    fault("every GPU answers an unknown error", "h100", lambda made: [every_call("Unknown Error", index)(made)
        for index in range(8)], NVML + ", nvmlReturn_t", *gpus("gpu_lost", "ERROR", *range(8))),
    fault("two GPUs ask for a reset", "b200", some({0: {"FieldValues:[230]": recovery(1)},
        3: {"FieldValues:[230]": recovery(4)}}), MEMORY + ", recovery action", *gpus("recovery_action", "ERROR", 0, 3)),
    fault("another process on two GPUs", "l40s", some({0: {"ComputeRunningProcesses": [{"pid": 7,
        "usedGpuMemory": 1 << 30}]}, 2: {"ComputeRunningProcesses": [{"pid": 8, "usedGpuMemory": 1 << 30}]}}),
        NVML + ", nvmlDeviceGetComputeRunningProcesses", *gpus("gpu_in_use", "WARNING", 0, 2)),
]  # fmt: skip


def none_listed(made: Machine) -> None:
    for index in reversed(range(len(made.addresses))):
        made.nvml["devices"].pop(index)
    made.torch["devices"] = []


COUNT = "gpu_lost|expected_gpus|gpu_absent"


def count(severity: str = "ERROR", *subjects: str | None, check: str = COUNT) -> Expect:
    return Expect(check, severity, subjects or (None,))


def six_of_eight(made: Machine) -> None:
    lose(made, 6, file=False)
    lose(made, 2, file=False)


def slurm_short(made: Machine) -> None:
    """Slurm granted GPUs 2 and 3, of which NVML lists one."""
    slurm(made, "2,3", 24)
    given(2)(made)
    made.denied.remove("/dev/nvidia3")
    made.files.pop("/dev/nvidia3")
    made.env.pop("CUDA_VISIBLE_DEVICES")


def pod_short(made: Machine) -> None:
    """The device plugin gave two GPUs by UUID, of which NVML lists one."""
    kubernetes(made)
    made.env["NVIDIA_VISIBLE_DEVICES"] = f"{made.gpus[1]['UUID']},{made.gpus[2]['UUID']}"
    given(1)(made)
    unlisted(made)


def own_xid(made: Machine) -> None:
    """A container with one of eight, whose own GPU fell off the bus; to it this is GPU 0."""
    container(3)(made)
    log(made, f"NVRM: Xid (PCI:{short(made.addresses[0])}): 79, {TEXTS[79]}")


def jobs_xid(made: Machine) -> None:
    job("5,6", 24)(made)
    made.affinity = list(range(64, 88))
    log(made, f"NVRM: Xid (PCI:{short(made.addresses[1])}): 119, {TEXTS[119]}")


def given_and(index: int, **changed: Any) -> Change:
    """A container with GPUs 4 and 6 of the host, numbered 0 and 1 in it."""
    return every(container(4, 6), some({index: changed}))


def reversed_torch(made: Machine) -> None:
    """torch numbers the fastest GPU first, NVML goes by the bus."""
    made.torch["devices"].reverse()
    loaded(throttle_reasons=8.0)(made)


def denied_to_users(made: Machine) -> None:
    made.user, made.env["HOME"] = (1000, "ann", "/home/ann"), "/home/ann"
    made.files["/home/ann/.profile"] = ""
    made.denied += [path for path in made.files if path.startswith("/dev/nvidia")]
    made.nvml = Unreadable("NVML: Insufficient Permissions", "no_permission")
    made.torch["devices"] = []
    made.required = True


def slice_of(made: Machine) -> None:
    uuid = "MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b"
    made.gpus[1]["MigMode"] = [1, 1]
    made.env["CUDA_VISIBLE_DEVICES"] = uuid
    made.torch["devices"] = [
        {
            **made.torch["devices"][1],
            "name": "NVIDIA A100-PCIE-40GB MIG 3g.20gb",
            "uuid": uuid.removeprefix("MIG-"),
            "total_memory": 20 << 30,
            "multi_processor_count": 42,
        }
    ]


def capital_uuid(made: Machine) -> None:
    made.gpus[0]["UUID"] = "GPU-abcdef12-0000-4000-8000-000000001111"
    made.env["CUDA_VISIBLE_DEVICES"] = "GPU-ABCDEF12-0000-4000-8000-000000001111"
    made.torch["devices"] = []


FIFTH = ("0000:c3:00.0",)
COUNTS = [
    fault("NVML lists none of eight", "h100", none_listed, NVML + ", nvmlDeviceGetCount",
        count("ERROR", None, "0000:1b:00.0"), also=tuple(COUNT.split("|"))),
    fault("NVML lists no GPU of one", "t4", none_listed, NVML + ", nvmlDeviceGetCount",
        count("ERROR", None, "0000:00:1e.0"), also=tuple(COUNT.split("|"))),
    fault("6 of 8", "b200", six_of_eight, NVML + ", nvmlDeviceGetCount",
        count("ERROR", None, "0000:52:00.0", "0000:d1:00.0"), also=tuple(COUNT.split("|"))),
    fault("Slurm granted two, of which one is there", "h100", slurm_short, "Slurm, SLURM_JOB_GPUS",
        count("ERROR", None, "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "0000:61:00.0"), also=tuple(COUNT.split("|"))),
    fault("a pod with two UUIDs, of which one is there", "a100_sxm", pod_short, TOOLKIT,
        count("ERROR", None, "NVIDIA_VISIBLE_DEVICES", "0000:52:00.0"), also=tuple(COUNT.split("|"))),
    fault("8 expected in a container that was given 7", "h200_x8", every(docker, having(expected=8),
        lambda made: lose(made, file=False)), "--expect-gpus N", count("ERROR", None, *FIFTH, "--expect-gpus"),
        also=tuple(COUNT.split("|"))),
    fault("2 expected, 4 there", "l40s", having(expected=2), "--expect-gpus N",
        count("WARNING", None, "--expect-gpus"), also=tuple(COUNT.split("|"))),
    fault("none expected, one there", "l4", having(expected=0), "--expect-gpus N",
        count("WARNING", None, "--expect-gpus"), also=tuple(COUNT.split("|"))),
    fault("torch sees none of NVML's 8", "h100", unusable("No CUDA GPUs are available"), CUDA + "NoDevice",
        count("ERROR"), also=tuple(COUNT.split("|"))),
    fault("torch sees none of NVML's 8, without an error", "h200_x8", torch(devices=[]),
        "torch.cuda.device_count", count("ERROR"), also=tuple(COUNT.split("|"))),
    fault("error 999 of CUDA", "rtx4090",
        unusable("CUDA unknown error - this may be due to an incorrectly set up environment"), CUDA + "Unknown",
        Expect("gpu_absent", "ERROR", (None,), no_remedy="--gpus all")),
    fault("a user who may not open the devices, and requires a GPU", "rtx3090", denied_to_users,
        "NVIDIA driver README: NVreg_DeviceFileMode", count("ERROR|WARNING", None, "/dev/nvidiactl", "/dev/nvidia0",
        check=COUNT + "|device_nodes|nvml_missing"), also=(*COUNT.split("|"), "device_nodes", "nvml_missing")),
    fault("a GPU that is lost, in a Python without torch", "h100",
        every(every_call("GPU is lost", 5), no_torch()), NVML + ", nvmlReturn_t", *gpus("gpu_lost", "ERROR", 5),
        also=("torch_version",)),
    fault("a GPU whose handle answers 999, in a Python without torch", "h100",
        every(every_call("Unknown Error", 5), no_torch()), NVML + ", NVML_ERROR_UNKNOWN",
        *gpus("gpu_lost", "ERROR", 5), also=("torch_version",)),
    fault("the only GPU answers 999, in a Python without torch", "h200_x1",
        every(every_call("Unknown Error", 0), no_torch()), NVML + ", NVML_ERROR_UNKNOWN",
        *gpus("gpu_lost", "ERROR", 0), also=("torch_version",)),
    fault("an Xid of the one GPU in a container", "h100", own_xid, CATALOGUE.format(79, "RESTART_BM"),
        Expect("xid_errors", "ERROR", ("GPU 0", "0000:61:00", "0000:61:00.0"))),
    fault("an Xid of a GPU of this job", "a100_sxm", jobs_xid, CATALOGUE.format(119, "RESET_GPU"),
        Expect("xid_errors", "ERROR", ("GPU 1", "0000:d1:00", "0000:d1:00.0"))),
    fault("ECC errors in a container that numbers GPUs anew", "h100", given_and(1, **{"TotalEccErrors:1,0": 2}),
        MEMORY, Expect("ecc_errors", "ERROR", ("GPU 1",), remedy="D1:00.0")),
    fault("a lower clock in a container that numbers GPUs anew", "a100_sxm",
        given_and(0, **{"ApplicationsClock:1": 900}), NVML + ", applications clock",
        Expect("clock_lock", "WARNING", ("GPU 0",), remedy="9D:00.0")),
    fault("a slowdown under load where torch numbers GPUs in another order", "h100", reversed_torch,
        NVML + ", nvmlClocksEventReasons", *gpus("throttling", "WARNING", 7)),
    fault("a slice of a divided GPU", "a100_pcie", slice_of, "NVIDIA, MIG User Guide", *gpus("mig_mode", "WARNING", 1)),
    fault("a UUID in capitals, which torch does not find", "l40s", capital_uuid,
        LEAVES + "; torch.cuda.device_count compares letter by letter",
        Expect("cuda_visible_devices", "WARNING", ("CUDA_VISIBLE_DEVICES",)),
        also=("gpu_absent", "expected_gpus", "gpu_lost")),
]  # fmt: skip


# The kernel's log in its other forms.
def says(*texts: str, index: int = 5) -> Any:
    return lambda made: log(made, *(text.format(at=short(made.addresses[index])) for text in texts))


def _own(address: str, index: int) -> tuple[str | None, ...]:
    return f"GPU {index}", address, short(address), None


AER = "Linux, PCI Express Advanced Error Reporting"
LOG = [
    fault("a fatal PCIe error that the root port reports", "h100",
        says("pcieport 0000:c2:01.0: AER: Uncorrected (Fatal) error message received from {at}.0",
        "nvidia {at}.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Inaccessible"), AER,
        Expect(KERNEL, "ERROR", (*_own("0000:c3:00.0", 5), "0000:c2:01.0")), touches=("kernel",)),
    fault("a hundred and fifty corrected PCIe errors", "a100_sxm",
        says(*["nvidia {at}.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"] * 150),
        AER + ": many", Expect(KERNEL, "WARNING", _own("0000:c3:00.0", 5)), touches=("kernel",)),
    fault("an adapter that failed, in an older driver's words", "k80",
        says("NVRM: RmInitAdapter failed! (0x26:0x56:1463)",
        "NVRM: rm_init_adapter failed for device bearing minor number 1", index=1),
        "NVIDIA, GPU Debug Guidelines: RmInitAdapter failed", Expect(KERNEL, "ERROR",
        (None, "GPU 1", "0000:43:00.0", "/dev/nvidia1", "minor number 1")), touches=("kernel",)),
    fault("a GPU that fell off the bus, without an Xid", "rtx4090",
        says("NVRM: GPU {at}.0: GPU has fallen off the bus.", index=0),
        "NVIDIA, GPU Debug Guidelines: fallen off the bus", Expect(KERNEL, "ERROR", _own("0000:01:00.0", 0)),
        touches=("kernel",)),
    fault("an uncorrected error of the host's memory", "h200_x8",
        says("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)"), "Linux, EDAC",
        Expect(KERNEL, "ERROR", (None, "MC0", "EDAC MC0")), touches=("kernel",)),
    fault("an Xid of many repetitions", "l40s", says(*[f"NVRM: Xid (PCI:{{at}}): 13, {TEXTS[13]}"] * 300, index=3),
        CATALOGUE.format(13, "RESTART_APP"), Expect("xid_errors", "WARNING", ("GPU 3", "0000:61:00", "0000:61:00.0")),
        touches=("xid",)),
    fault("two Xids of one GPU", "h100", says(f"NVRM: Xid (PCI:{{at}}): 31, {TEXTS[31]}",
        f"NVRM: Xid (PCI:{{at}}): 119, {TEXTS[119]}"), CATALOGUE.format(119, "RESET_GPU"),
        Expect("xid_errors", "ERROR", ("GPU 5", "0000:c3:00", "0000:c3:00.0")),
        Expect("xid_errors", "WARNING", ("GPU 5", "0000:c3:00", "0000:c3:00.0")), touches=("xid",)),
    fault("Xids of two GPUs", "b200", lambda made: log(made, f"NVRM: Xid (PCI:0000:1b:00): 79, {TEXTS[79]}",
        f"NVRM: Xid (PCI:0000:df:00): 94, {TEXTS[94]}"), CATALOGUE.format(79, "RESTART_BM"),
        Expect("xid_errors", "ERROR", ("GPU 0", "0000:1b:00", "0000:1b:00.0")),
        Expect("xid_errors", "WARNING", ("GPU 7", "0000:df:00", "0000:df:00.0")), touches=("xid",)),
    fault("Xid 119 after an earlier one was mended", "l40s", says(f"NVRM: Xid (PCI:{{at}}): 119, {TEXTS[119]}",
        "NVRM: Xid (PCI:{at}): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "NVRM: Xid (PCI:{at}): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
        f"NVRM: Xid (PCI:{{at}}): 119, {TEXTS[119]}", index=3), CATALOGUE.format(119, "RESET_GPU"),
        Expect("xid_errors", "ERROR", ("GPU 3", "0000:61:00", "0000:61:00.0")), touches=("xid",)),
    fault("Xid 109 that ended with a note of none in another GPU's log", "h100",
        lambda made: log(made, f"NVRM: Xid (PCI:0000:c3:00): 109, {TEXTS[109]}",
        "NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"),
        CATALOGUE.format(109, "RESET_GPU"), Expect("xid_errors", "ERROR", ("GPU 5", "0000:c3:00", "0000:c3:00.0")),
        touches=("xid",)),
]  # fmt: skip


# Jetson, once more, and what a wheel of the wrong kind does there.
def jetson_server_wheel(made: Machine) -> None:
    made.torch |= {
        "torch": "2.11.0+cu130",
        "cuda": "13.0",
        "arch_list": ["sm_80", "sm_90", "sm_100", "sm_120"],
        "devices": [],
        "gaps": {},
    }


JETSON = [
    fault("a wheel without CUDA on a Jetson", "orin", cpu_build, "NVIDIA, Installing PyTorch for Jetson",
        count("ERROR", None, check="torch_cuda_build|gpu_absent"), also=("torch_cuda_build", "gpu_absent")),
    fault("a server's wheel on a Jetson, which sees no GPU", "orin", jetson_server_wheel,
        "NVIDIA, Installing PyTorch for Jetson", count("ERROR", None, check="torch_architecture|gpu_absent"),
        also=("torch_architecture", "gpu_absent")),
]  # fmt: skip


# Numbers in other units and hierarchies, and limits that bite together.
def _tight_pod(made: Machine) -> None:
    kubernetes(made)
    made.files["/sys/fs/cgroup/job/memory.current"] = f"{16 * (1 << 30) - (200 << 20)}\n"


def _docker_affinity(made: Machine) -> None:
    docker(made)
    limited(made, 4, 32)
    made.torch["threads"] = 64
    made.env.pop("OMP_NUM_THREADS")


HOST = [
    fault("a pod close to its limit of memory", "h200_x4", _tight_pod, "Linux, cgroup v2, memory.max",
        count("WARNING", None, check="memory_left")),
    fault("docker --cpus 4 on 128 CPUs", "a100_sxm", _docker_affinity, "Linux, CFS Bandwidth Control",
        count("WARNING", "/sys/fs/cgroup/job/cpu.max", check="cpu_quota")),
    fault("MPS over a pipe folder", "a10g", env(CUDA_MPS_PIPE_DIRECTORY="/tmp/mps"),
        "NVIDIA, Multi-Process Service", count("WARNING", None, "CUDA_MPS_PIPE_DIRECTORY", check="gpu_shared")),
    fault("a shard by SLURM_JOB_GRES", "l40s", job("0", 16, SLURM_JOB_GRES="shard:2"), "Slurm, GRES, sharding",
        count("WARNING", None, check="gpu_shared")),
    fault("NCCL_P2P_LEVEL=LOC", "h100", env(NCCL_P2P_LEVEL="LOC"),
        "NCCL, Environment Variables", count("WARNING", "NCCL_P2P_LEVEL", check="nccl_variables"), touches=("p2p",)),
    fault("NCCL_NET=Socket beside InfiniBand", "b200", lambda made: (made.env.update(NCCL_NET="Socket"),
        made.files.update({"/dev/infiniband/uverbs0": ""})), "NCCL, Environment Variables",
        count("WARNING", "NCCL_NET", check="nccl_variables"), touches=("net",)),
]  # fmt: skip

FAULTS = [*EVERY, *COUNTS, *LOG, *JETSON, *HOST]
