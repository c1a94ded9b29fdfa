"""Fewer GPUs than there should be, or none: on the bus, in NVML, in torch, as device files, by what was asked for."""

# ruff: noqa: F403, F405 - the changes are the words of this table
from typing import Any

from faults.changes import *
from faults.fault import Fault, on_each
from faults.fault import fault as expecting_one
from faults.machines import Machine

from gputune.host import Unreadable

SYSFS = "Linux, /sys/bus/pci; NVML, nvmlDeviceGetCount"
TOOLKIT = "NVIDIA Container Toolkit, environment variables"
SLURM = "Slurm, sbatch and srun, output environment variables"
COUNT = "gpu_lost|expected_gpus|gpu_absent"
FIFTH = ("0000:c3:00.0", "0000:c3:00", "00000000:C3:00.0")
"""GPU 5's address on the machines of eight."""


def fault(  # noqa: PLR0917 - a row of the table
    name: str,
    kind: str,
    inject: Any,
    severity: str,
    subjects: tuple[str | None, ...],
    source: str,
    check: str = COUNT,
    **more: Any,
) -> Fault:
    more = {"also": tuple(COUNT.split("|")), "subject": "counts", **more}
    return expecting_one(name, kind, inject, check, severity, subjects, source, **more)


def _seven(**gone: bool) -> Any:
    return lambda made: lose(made, **gone)


def _docker_seven(visible: str, **gone: bool) -> Change:
    return every(docker, env(NVIDIA_VISIBLE_DEVICES=visible), _seven(**gone))


def _slurm_seven(variables: dict[str, str], **gone: bool) -> Any:
    def inject(made: Machine) -> None:
        slurm(made, "0,1,2,3,4,5,6,7", made.cpus)
        for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE"):
            del made.env[name]
        del made.env["CUDA_VISIBLE_DEVICES"]
        made.env |= variables
        lose(made, **gone)

    return inject


def _torch_seven(index: int = 5) -> Any:
    def inject(made: Machine) -> None:
        del made.torch["devices"][index]

    return inject


def _revoked(kind_of_container: Any, visible: str) -> Any:
    """`systemctl daemon-reload` took the devices out of a running container's cgroup: they are still listed."""

    def inject(made: Machine) -> None:
        kind_of_container(made)
        made.env["NVIDIA_VISIBLE_DEVICES"] = visible
        made.denied += [path for path in made.files if path.startswith("/dev/nvidia")]
        made.nvml = Unreadable("NVML: Unknown Error", "unknown_error")
        made.torch["devices"] = []

    return inject


def _asked(*how: Change, **variables: str) -> Change:
    return every(*how, without_gpus, env(**variables))


def _no_driver(name: str | None, required: bool = False) -> Change:
    """The GPUs are on the bus, and NVIDIA's kernel module is not loaded."""

    def inject(made: Machine) -> None:
        for address in made.addresses:
            held_by(made, address, name)
        without_gpus(made)
        made.files["/proc/modules"] = "nouveau 2306048 1 - Live 0x0\n" if name == "nouveau" else ""
        made.required = required

    return inject


FAULTS = [
    *on_each("h100 a100_sxm", fault, "7 of 8 in NVML and torch, 8 on the bus and in /dev", _seven(), "ERROR",
        (*FIFTH, None), SYSFS, touches=("*gpu",)),
    *on_each("h100 b200", fault, "7 of 8, and the device file is gone too", _seven(file=False), "ERROR",
        (*FIFTH, None), SYSFS, touches=("*gpu",)),
    fault("3 of 4, and the device file is gone too", "l40s", lambda made: lose(made, 2, file=False), "ERROR",
        ("0000:52:00.0", None), SYSFS, touches=("*gpu",)),
    fault("1 of 2 on a workstation", "rtx3090", lambda made: lose(made, 1, file=False), "ERROR",
        ("0000:43:00.0", None), SYSFS, touches=("*gpu",)),
    fault("7 of 8 in a container that asked for all", "h100", _docker_seven("all"), "ERROR",
        (*FIFTH, None, "NVIDIA_VISIBLE_DEVICES"), TOOLKIT),
    fault("7 of 8 in a container that asked for all, without the file", "h200_x8", _docker_seven("all", file=False),
        "ERROR", (*FIFTH, None, "NVIDIA_VISIBLE_DEVICES"), TOOLKIT),
    fault("7 of 8 in a container that names 8", "h100", _docker_seven("0,1,2,3,4,5,6,7", file=False), "ERROR",
        (*FIFTH, None, "NVIDIA_VISIBLE_DEVICES"), TOOLKIT),
    fault("7 of 8 in a container that names 8 by UUID", "a100_sxm",
        _docker_seven(",".join(f"GPU-000020b2-0000-4000-8000-{(n + 1) * 0x1111:012x}" for n in range(8)), file=False),
        "ERROR", (*FIFTH, None, "NVIDIA_VISIBLE_DEVICES"), TOOLKIT),
    fault("7 of 8, of which Slurm granted the numbers", "h100",
        _slurm_seven({"SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7"}, file=False), "ERROR", (*FIFTH, None, "SLURM_JOB_GPUS"),
        SLURM),
    fault("7 of 8, of which Slurm granted a range", "h200_x8", _slurm_seven({"SLURM_STEP_GPUS": "0-7"}, file=False),
        "ERROR", (*FIFTH, None, "SLURM_STEP_GPUS"), SLURM),
    fault("7 of 8, of which Slurm granted the count", "a100_sxm",
        _slurm_seven({"SLURM_GPUS_ON_NODE": "8"}, file=False), "ERROR", (*FIFTH, None, "SLURM_GPUS_ON_NODE"), SLURM),
    fault("torch sees 7 of NVML's 8, and nothing hides one", "h100", _torch_seven(), "ERROR", ("GPU 5", None),
        "torch.cuda.device_count", touches=("*gpu",)),
    fault("torch sees 3 of NVML's 4, and nothing hides one", "h200_x4", _torch_seven(1), "ERROR",
        ("GPU 1", None), "torch.cuda.device_count", touches=("*gpu",)),
    fault("8 expected, 7 there, none on the bus", "h100", every(having(expected=8), _seven(file=False, bus=False)),
        "ERROR", (None, "--expect-gpus"), "--expect-gpus N", touches=("*gpu",)),
    fault("4 expected, 1 there", "h200_x1", having(expected=4), "ERROR", (None, "--expect-gpus"), "--expect-gpus N"),
    fault("1 expected, none there", "cpu", having(expected=1), "ERROR", (None, "--expect-gpus"), "--expect-gpus N"),
    fault("8 expected, 8 there, of which torch sees 7", "b200", every(having(expected=8), _torch_seven()),
        "ERROR", (None, "GPU 5", "--expect-gpus"), "--expect-gpus N", touches=("*gpu",)),
    fault("a pod by CDI whose devices were revoked", "h100", _revoked(kubernetes, "void"), "ERROR",
        (None, "/dev/nvidia0", "GPU 0"),
        "NVIDIA Container Toolkit, troubleshooting: Failed to initialize NVML: Unknown Error",
        check=COUNT + "|nvml_missing|device_nodes", also=(*COUNT.split("|"), "nvml_missing", "device_nodes")),
    fault("a container whose devices were revoked", "l40s", _revoked(docker, "all"), "ERROR",
        (None, "/dev/nvidia0", "GPU 0"),
        "NVIDIA Container Toolkit, troubleshooting: Failed to initialize NVML: Unknown Error",
        check=COUNT + "|nvml_missing|device_nodes", also=(*COUNT.split("|"), "nvml_missing", "device_nodes")),
    fault("a GPU that no driver holds", "l40s", unbound(None), "WARNING", ("0000:61:00.0",), SYSFS,
        touches=("*gpu",)),
    fault("a GPU that no driver holds", "a100_pcie", unbound(None), "WARNING", ("0000:43:00.0",), SYSFS,
        touches=("*gpu",)),
    fault("nouveau holds the GPU", "rtx3090", _no_driver("nouveau"), "WARNING", ("0000:1b:00.0",),
        "NVIDIA, Driver Installation Guide: nouveau", check="driver_missing"),
    fault("nouveau holds the GPU that was asked for", "rtx4090", _no_driver("nouveau", required=True), "ERROR",
        ("0000:01:00.0",), "NVIDIA, Driver Installation Guide: nouveau", check="driver_missing", also=("gpu_absent",)),
    fault("no driver is loaded", "t4", _no_driver(None), "WARNING", ("0000:00:1e.0",),
        "NVIDIA, Driver Installation Guide", check="driver_missing"),
    fault("no driver is loaded on a node that must have GPUs", "h100", _no_driver(None, required=True), "ERROR",
        ("0000:1b:00.0",), "NVIDIA, Driver Installation Guide", check="driver_missing", also=("gpu_absent",)),
    fault("a GPU is required, and there is none", "cpu", having(required=True), "ERROR", (None,), "--require-gpu",
        check="gpu_absent"),
    fault("a container that asked for a GPU and has none", "l4", _asked(docker, NVIDIA_VISIBLE_DEVICES="0"), "ERROR",
        (None, "NVIDIA_VISIBLE_DEVICES"), TOOLKIT, check="gpu_absent|expected_gpus",
        also=("gpu_absent", "expected_gpus")),
    fault("a pod that was granted a GPU and has none", "h200_x1",
        _asked(kubernetes, NVIDIA_VISIBLE_DEVICES="GPU-00002335-0000-4000-8000-000000001111"), "ERROR",
        (None, "NVIDIA_VISIBLE_DEVICES"), TOOLKIT, check="gpu_absent|expected_gpus",
        also=("gpu_absent", "expected_gpus")),
    fault("a Slurm job that was granted a GPU and has none", "a100_pcie", _asked(lambda made: slurm(made, "3", 16)),
        "ERROR", (None, "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"), SLURM, check="gpu_absent|expected_gpus",
        also=("gpu_absent", "expected_gpus", "driver_missing", "cuda_visible_devices"), no_remedy="--gpus all"),
    fault("a container with void, on a host with GPUs", "l40s", _asked(docker, NVIDIA_VISIBLE_DEVICES="void"),
        "WARNING", ("NVIDIA_VISIBLE_DEVICES",), TOOLKIT, check="nvidia_visible_devices", also=()),
    fault("a container of NVIDIA_VISIBLE_DEVICES=none, on a host with GPUs", "h100",
        _asked(docker, NVIDIA_VISIBLE_DEVICES="none"), "WARNING", ("NVIDIA_VISIBLE_DEVICES",), TOOLKIT,
        check="nvidia_visible_devices", also=()),
]  # fmt: skip


# A GPU that torch cannot use, by CUDA's reason, and device files without which it cannot.
CUDA = "CUDA Runtime API, cudaError"


def unusable(error: str, *how: Change) -> Change:
    return every(*how, torch(devices=None, gaps={"devices": f"RuntimeError: {error}"}))


def _stub(made: Machine) -> None:
    made.env["LD_LIBRARY_PATH"] = "/usr/local/cuda/lib64/stubs"
    made.files |= {"/usr/local/cuda/lib64/stubs/libcuda.so": "", "/usr/local/cuda/lib64/stubs/libcuda.so.1": ""}


def _compat(made: Machine) -> None:
    made.env["LD_LIBRARY_PATH"] = "/usr/local/cuda/compat"
    made.files |= {"/usr/local/cuda/compat/libcuda.so.1": "", "/usr/local/cuda/compat/libcuda.so": ""}


def _no_uvm(made: Machine) -> None:
    del made.files["/dev/nvidia-uvm"]
    made.files["/proc/modules"] = "nvidia 9715712 0 - Live 0x0\n"


def _no_control(made: Machine) -> None:
    del made.files["/dev/nvidiactl"]
    made.nvml = Unreadable("NVML: Driver Not Loaded", "driver_not_loaded")


def _closed_control(made: Machine) -> None:
    made.denied.append("/dev/nvidiactl")
    made.nvml = Unreadable("NVML: Insufficient Permissions", "no_permission")


PATHS = "library_path|device_nodes"
NODES = "device_nodes"
WHY = "gpu_absent|" + PATHS
FAULTS += [
    fault("a stub of libcuda on LD_LIBRARY_PATH", "h100", unusable("Error 34: CUDA driver is a stub library", _stub),
        "ERROR|WARNING", (None, "LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs"), CUDA + "StubLibrary", check=WHY,
        also=tuple(WHY.split("|")), no_remedy="--gpus all"),
    fault("a stub of libcuda on LD_LIBRARY_PATH, behind the driver's", "l40s", _stub, "WARNING|ERROR",
        ("LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs"), CUDA + "StubLibrary", check=PATHS, also=()),
    fault("a compatibility package on a GeForce", "rtx4090",
        unusable("Error 804: forward compatibility was attempted on non supported HW", _compat), "ERROR|WARNING",
        (None, "LD_LIBRARY_PATH", "/usr/local/cuda/compat"),
        "NVIDIA, CUDA Compatibility: data-centre GPUs only; " + CUDA + "CompatNotSupportedOnDevice", check=WHY,
        also=tuple(WHY.split("|")), no_remedy="--gpus all"),
    fault("error 803 of libraries and module that do not fit", "a100_pcie",
        unusable("Error 803: system has unsupported display driver / cuda driver combination"), "ERROR", (None,),
        CUDA + "SystemDriverMismatch", check="gpu_absent|driver_mismatch", also=("gpu_absent", "driver_mismatch")),
    *on_each("h100 t4", fault, "the unified memory device is missing",
        unusable("CUDA unknown error - this may be due to an incorrectly set up environment", _no_uvm),
        "ERROR", ("/dev/nvidia-uvm", None), "CUDA needs nvidia-uvm: nvidia-modprobe(1)", check=NODES,
        also=("gpu_absent",)),
    fault("the control device is missing", "l40s", unusable("No CUDA GPUs are available", _no_control),
        "ERROR", ("/dev/nvidiactl",), "NVIDIA driver README: device files", check=NODES,
        also=("gpu_absent", "nvml_missing")),
    fault("the control device may not be opened", "a10g", unusable("No CUDA GPUs are available", _closed_control),
        "ERROR", ("/dev/nvidiactl",), "NVIDIA driver README: NVreg_DeviceFileMode", check=NODES,
        also=("gpu_absent", "nvml_missing")),
    fault("a container without the capability compute", "l4",
        unusable("libcuda.so.1: cannot open shared object file", docker, env(NVIDIA_DRIVER_CAPABILITIES="utility")),
        "ERROR", (None, "NVIDIA_DRIVER_CAPABILITIES"),
        "NVIDIA Container Toolkit, driver capabilities", check="gpu_absent", also=(), remedy="compute"),
    *on_each("h200_x8 a100_sxm", fault, "torch waits for Fabric Manager",
        unusable("Error 802: system not yet initialized"), "ERROR", (None,),
        CUDA + "SystemNotReady; Fabric Manager User Guide", check="fabric_manager", also=()),
    fault("one GPU in one container, which CUDA cannot use", "h100",
        unusable("CUDA error: out of memory", container(3)), "ERROR", (None,), CUDA, check="gpu_absent", also=(),
        no_remedy="--gpus all"),
]  # fmt: skip


# Jetson and WSL.
def _desktop_wheel(made: Machine) -> None:
    made.torch |= {
        "torch": "2.11.0+cu130",
        "cuda": "13.0",
        "arch_list": ["sm_80", "sm_90", "sm_100", "sm_110", "sm_120"],
    }


def _wsl_silent(made: Machine) -> None:
    made.nvml = Unreadable("NVML: NVML Shared Library Not Found", "library_not_found")


FAULTS += [
    fault("a desktop wheel on a Jetson", "orin", _desktop_wheel, "ERROR", ("GPU 0",),
        "CUDA Programming Guide, binary compatibility: not between desktop and Tegra", check="torch_architecture",
        also=("nvml_missing",)),
    fault("NVML is missing in WSL", "wsl", _wsl_silent, "WARNING", (None,), "NVIDIA, CUDA on WSL: /usr/lib/wsl/lib",
        check="nvml_missing", also=()),
]  # fmt: skip
