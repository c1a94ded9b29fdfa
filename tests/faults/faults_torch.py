"""Faults of torch, its libraries and the variables that change them."""

# ruff: noqa: F403, F405 - the changes are the words of this table
from typing import Any

from faults.changes import *
from faults.fault import Expect, Fault, on_each
from faults.fault import fault as expecting_one
from faults.machines import CU13, CU126, Machine

from gputune.host import Unreadable

GUIDE = "CUDA Programming Guide, "
VISIBLE = "CUDA_VISIBLE_DEVICES"


def fault(name: str, *row: Any, **more: Any) -> Fault:
    return expecting_one(name, *row, **{"touches": (name,), "subject": "torch", **more})


def each(name: str, kind: str, count: int, inject: Any, check: str, severity: str, source: str, **more: Any) -> Fault:  # noqa: PLR0917 - a row of the table
    expected = tuple(Expect(check, severity, (f"GPU {index}",)) for index in range(count))
    return Fault(name, kind, inject, expected, source, subject="torch", touches=("*",), **more)


def flags(**values: Any) -> Change:
    return lambda made: made.torch.update(flags={**made.torch["flags"], **values})


def needs(**values: Any) -> Change:
    return lambda made: made.torch.update(compile={**made.torch["compile"], **values})


def _refused(driver: int, version: str, cuda: str, error: str) -> Change:
    def inject(made: Machine) -> None:
        made.nvml |= {"CudaDriverVersion_v2": driver, "DriverVersion": version}
        module(made, version)
        made.torch |= {"cuda": cuda, "devices": None, "gaps": {"devices": f"RuntimeError: {error}"}}

    return inject


def _mismatch(refuses: bool) -> Change:
    def inject(made: Machine) -> None:
        module(made, "570.86.15")
        if refuses:
            made.nvml = Unreadable("NVML: Driver/library version mismatch", "version_mismatch")
            error = "RuntimeError: Error 803: unsupported display driver / cuda driver combination"
            made.torch |= {"devices": None, "gaps": {"devices": error}}

    return inject


def _other_library(name: str, folder: str, how: str) -> Any:
    def inject(made: Machine) -> None:
        made.env["LD_LIBRARY_PATH"] = folder
        made.files[f"{folder}/{name}"] = ""
        own = [path for path in made.torch["loaded"] if not path.endswith(name)]
        if how == "instead":
            made.torch["loaded"] = [*own, f"{folder}/{name}"]
        elif how == "twice":
            made.torch["loaded"] = [*made.torch["loaded"], f"{folder}/{name}"]

    return inject


ARCHITECTURE = GUIDE + "binary and PTX compatibility"
COMPAT = "NVIDIA, CUDA Compatibility"
LEAVES = "CUDA Programming Guide, CUDA Environment Variables: stops at the first invalid entry"
FAULTS = [
    each("a wheel without the kernels of this card", "k80", 2, torch(arch_list=list(CU126)), "torch_architecture",
        "ERROR", ARCHITECTURE),
    each("a wheel without the kernels of this card", "v100", 4, torch(arch_list=list(CU13), torch="2.11.0+cu130"),
        "torch_architecture", "ERROR", ARCHITECTURE),
    each("a wheel without the kernels of this card", "p100", 1, torch(arch_list=list(CU13), torch="2.11.0+cu130"),
        "torch_architecture", "ERROR", ARCHITECTURE),
    each("a wheel older than this card", "rtx5090", 1, torch(arch_list=list(CU126), torch="2.6.0+cu126", cuda="12.6"),
        "torch_architecture", "ERROR", ARCHITECTURE),
    each("a wheel older than this card", "b200", 8, torch(arch_list=list(CU126), torch="2.6.0+cu126", cuda="12.6"),
        "torch_architecture", "ERROR", ARCHITECTURE),
    each("code for another card only (sm_90a)", "rtx4090", 1, torch(arch_list=["sm_90a"]), "torch_architecture",
        "ERROR", ARCHITECTURE),
    fault("a driver for CUDA 12.2 below a torch for 13.0", "h100",
        _refused(12020, "535.183.01", "13.0", "The NVIDIA driver on your system is too old (found version 12020)"),
        "driver_cuda", "ERROR", None, COMPAT, touches=("*",)),
    fault("a driver for CUDA 11.4 below a torch for 12.6", "a10g",
        _refused(11040, "470.256.02", "12.6", "The NVIDIA driver on your system is too old (found version 11040)"),
        "driver_cuda", "ERROR", None, COMPAT, touches=("*",)),
    fault("a driver for CUDA 12.4 below a torch for 13.0", "laptop",
        _refused(12040, "550.90.07", "13.0", "The NVIDIA driver on your system is too old (found version 12040)"),
        "driver_cuda", "ERROR", None, COMPAT, touches=("*",), no_remedy="cuda-compat"),
    *(fault("kernel module and libraries of two versions", kind, _mismatch(refuses=True), "driver_mismatch", "ERROR",
        None, "NVML API reference, NVML_ERROR_LIB_RM_VERSION_MISMATCH", touches=("*",), also=("gpu_absent",))
        for kind in ("h100", "rtx4090", "t4")),
    fault("libraries newer than the module, in a container", "l40s", _mismatch(refuses=False), "driver_mismatch",
        "ERROR", None, "NVIDIA, /proc/driver/nvidia/version", touches=("driver",)),
    *on_each("h100 rtx3090 gh200 wsl", fault, "torch is built without CUDA", cpu_build, "torch_cuda_build", "ERROR",
        None, "PyTorch, Start Locally", touches=("*",)),
    *on_each("h100 cpu", fault, "torch is not installed", no_torch(), "torch_version", "WARNING", None,
        "gputune examines torch", touches=("*",)),
    fault("torch cannot be imported", "l4", no_torch({"type": "ImportError", "name": None,
        "message": "libcudnn.so.9: cannot open shared object file"}), "torch_version", "ERROR", None,
        "Python, ImportError", touches=("*",)),
    fault("torch is killed while it is imported", "h200_x1", lambda made: setattr(made, "torch",
        Unreadable("was killed by SIGSEGV", "killed")), "torch_version", "ERROR|UNKNOWN", None, "signal(7)",
        touches=("*",)),
    fault("a torch older than 2.4", "a100_sxm", torch(torch="2.1.2+cu121", cuda="12.1"), "torch_version", "WARNING",
        None, "gputune supports 2.4 and newer", touches=("torch",)),
    fault("a torch older than 2.4", "rtx3090", torch(torch="1.13.1+cu117", cuda="11.7"), "torch_version", "WARNING",
        None, "gputune supports 2.4 and newer", touches=("torch",), also=("compile_needs",)),
    # CUDA_VISIBLE_DEVICES
    fault("no GPU is visible: an empty value", "h100", visible(""), "cuda_visible_devices",
        "WARNING", VISIBLE, LEAVES, touches=("visible",), also=("gpu_absent",)),
    fault("no GPU is visible: -1", "l40s", visible("-1"), "cuda_visible_devices", "WARNING",
        VISIBLE, LEAVES, touches=("visible",), also=("gpu_absent",)),
    fault("no GPU is visible: NoDevFiles", "a100_pcie", visible("NoDevFiles"),
        "cuda_visible_devices", "WARNING", VISIBLE, LEAVES, touches=("visible",), also=("gpu_absent",)),
    fault("a number too high", "h100", visible("8"), "cuda_visible_devices", "WARNING", VISIBLE,
        LEAVES, touches=("visible",), also=("gpu_absent",)),
    fault("a number too high behind two good ones", "h200_x4", visible("0,1,9", 0, 1),
        "cuda_visible_devices", "WARNING", VISIBLE, LEAVES, touches=("visible",)),
    fault("one GPU twice", "h100", visible("0,0"), "cuda_visible_devices", "WARNING", VISIBLE,
        LEAVES, touches=("visible",), also=("gpu_absent",)),
    fault("a semicolon for a comma", "h100", visible("0;1", 0), "cuda_visible_devices", "WARNING",
        VISIBLE, LEAVES, touches=("visible",)),
    fault("a semicolon for a comma", "rtx3090", visible("1;0", 1), "cuda_visible_devices",
        "WARNING", VISIBLE, LEAVES, touches=("visible",)),
    fault("a blank for a comma", "a100_sxm", visible("0 1 2 3", 0), "cuda_visible_devices",
        "WARNING", VISIBLE, LEAVES, touches=("visible",)),
    fault("a word", "v100", visible("all"), "cuda_visible_devices", "WARNING", VISIBLE, LEAVES,
        touches=("visible",), also=("gpu_absent",)),
    fault("a UUID of another machine", "b200",
        visible("GPU-deadbeef-0000-0000-0000-000000000000"), "cuda_visible_devices", "WARNING",
        VISIBLE, LEAVES, touches=("visible",), also=("gpu_absent",)),
    fault("a GPU named where there is none", "cpu", env(CUDA_VISIBLE_DEVICES="0"), "cuda_visible_devices", "WARNING",
        VISIBLE, LEAVES, touches=("visible",)),
    # TF32 and other precision
    fault("TF32 is forbidden", "h100", env(NVIDIA_TF32_OVERRIDE="0"), "tf32_override", "WARNING",
        "NVIDIA_TF32_OVERRIDE", "shared facts, NVIDIA_TF32_OVERRIDE on an H200", touches=("tf32",)),
    fault("TF32 is forced", "a100_sxm", env(NVIDIA_TF32_OVERRIDE="1"), "tf32_override", "WARNING",
        "NVIDIA_TF32_OVERRIDE", "shared facts, NVIDIA_TF32_OVERRIDE on an H200", touches=("tf32",)),
    fault("TF32 override of no known effect", "l4", env(NVIDIA_TF32_OVERRIDE="off"), "tf32_override", "WARNING",
        "NVIDIA_TF32_OVERRIDE", "shared facts, NVIDIA_TF32_OVERRIDE", touches=("tf32",)),
    fault("TF32 asked for in words that torch ignores", "rtx4090", env(TORCH_ALLOW_TF32_CUBLAS_OVERRIDE="true"),
        "tf32_override", "WARNING", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "shared facts, TORCH_ALLOW_TF32_CUBLAS_OVERRIDE: only 0 and 1", touches=("tf32",)),
    fault("TF32 asked of a card that has none", "t4", env(NVIDIA_TF32_OVERRIDE="1"), "tf32_unsupported", "WARNING",
        "GPU 0", GUIDE + "table of compute capabilities", touches=("tf32",)),
    fault("TF32 asked of a card that has none, by torch's flag", "p100", flags(matmul_tf32=True), "tf32_unsupported",
        "WARNING", "GPU 0", GUIDE + "table of compute capabilities", touches=("tf32",)),
    fault("a cuBLAS without TF32", "a100_pcie", torch(cublas="10.2.2", cublaslt="10.2.2"), "tf32_libraries", "WARNING",
        "cuBLAS", "release notes of cuBLAS 11.0", touches=("cublas",)),
    fault("a cuDNN without TF32", "l40s", torch(cudnn=7605), "tf32_libraries", "WARNING", "cuDNN",
        "release notes of cuDNN 8.0", touches=("cudnn",)),
    fault("torch's older and newer switches contradict each other", "h100",
        torch(api_conflict="PyTorch is checking whether allow_tf32_new is enabled for cuBlas matmul"), "precision_api",
        "WARNING", None, "PyTorch, CUDA notes, TF32"),
    fault("float16 has no Tensor Cores on GTX 16", "gtx1660", lambda made: None, "bf16_emulated", "WARNING", "GPU 0",
        "NVIDIA, Turing: GTX 16 has no Tensor Cores", no_remedy="float16"),
    each("bfloat16 is emulated", "v100", 4, lambda made: None, "bf16_emulated", "WARNING",
        GUIDE + "table of compute capabilities"),
    # Libraries
    *(fault(f"another cuDNN {how}", kind, _other_library("libcudnn.so.9", "/usr/local/cudnn/lib64", how),
        "library_copies", "WARNING", "libcudnn.so.9", "ld.so(8); PyTorch, cuDNN version mismatch",
        touches=("LD_LIBRARY_PATH",), also=("library_path",)) for how,
        kind in (("instead", "h100"), ("twice", "a100_sxm"), ("on the path", "rtx4090"))),
    fault("another cuBLAS instead", "l4", _other_library("libcublas.so.13", "/opt/conda/lib", "instead"),
        "library_copies", "WARNING", "libcublas.so.13", "ld.so(8)", touches=("LD_LIBRARY_PATH",)),
    # Debugging left on
    fault("every launch waits", "h100", env(CUDA_LAUNCH_BLOCKING="1"), "launch_blocking", "WARNING",
        "CUDA_LAUNCH_BLOCKING", GUIDE + "CUDA Environment Variables"),
    fault("no caching of memory", "a100_sxm", env(PYTORCH_NO_CUDA_MEMORY_CACHING="1"), "memory_caching", "WARNING",
        "PYTORCH_NO_CUDA_MEMORY_CACHING", "PyTorch, CUDA notes"),
    fault("device-side assertions", "l40s", env(PYTORCH_USE_CUDA_DSA="1"), "device_assertions", "WARNING",
        "PYTORCH_USE_CUDA_DSA", "PyTorch, CUDADeviceAssertionHost"),
    fault("anomaly detection", "rtx4090", flags(anomaly_detection=True), "anomaly_detection", "WARNING", None,
        "torch.autograd.set_detect_anomaly"),
    fault("determinism in every program", "h100", lambda made: (flags(deterministic_algorithms=True)(made),
        env(CUBLAS_WORKSPACE_CONFIG=":4096:8")(made)), "determinism", "WARNING", (None, "CUBLAS_WORKSPACE_CONFIG"),
        "PyTorch, Reproducibility", touches=("determinism",)),
    fault("determinism without cuBLAS's workspace", "a100_pcie", flags(deterministic_algorithms=True), "determinism",
        "WARNING", "CUBLAS_WORKSPACE_CONFIG", "cuBLAS, Results Reproducibility", touches=("determinism",)),
    fault("determinism against cudnn.benchmark", "l4", flags(cudnn_deterministic=True, cudnn_benchmark=True),
        "determinism", "WARNING", None, "PyTorch, Reproducibility", touches=("determinism",)),
    fault("a small workspace for cuBLAS", "h200_x1", env(CUBLAS_WORKSPACE_CONFIG=":16:8"), "determinism", "WARNING",
        "CUBLAS_WORKSPACE_CONFIG", "cuBLAS, Results Reproducibility", touches=("determinism",)),
    fault("cuDNN logs", "h100", env(CUDNN_LOGINFO_DBG="1", CUDNN_LOGDEST_DBG="stdout"), "library_logging", "WARNING",
        "CUDNN_LOGINFO_DBG", "cuDNN, Error Reporting and API Logging"),
    fault("cuBLASLt logs", "t4", env(CUBLASLT_LOG_LEVEL="5"), "library_logging", "WARNING", "CUBLASLT_LOG_LEVEL",
        "cuBLAS, cuBLASLt Logging"),
    fault("torch.distributed logs", "b200", env(TORCH_DISTRIBUTED_DEBUG="DETAIL"), "library_logging", "WARNING",
        "TORCH_DISTRIBUTED_DEBUG", "PyTorch, torch.distributed, Logging"),
    *(fault(f"NCCL_DEBUG={value}", kind, env(NCCL_DEBUG=value), "library_logging|nccl_variables", "WARNING",
        "NCCL_DEBUG", "NCCL, Environment Variables", touches=("nccl debug",)) for value,
        kind in (("INFO", "h100"), ("TRACE", "a100_sxm"))),
    *(fault(f"{name} left set", kind, env(**{name: "1"}), "nccl_variables", "WARNING", name,
        "NCCL, Environment Variables: for debugging") for name,
        kind in (("NCCL_P2P_DISABLE", "h100"), ("NCCL_SHM_DISABLE", "l40s"), ("NCCL_P2P_DISABLE", "a100_sxm"))),
    fault("NCCL_IB_DISABLE left set beside InfiniBand", "h100",
        lambda made: (env(NCCL_IB_DISABLE="1")(made), made.files.update({f"/dev/infiniband/uverbs{n}": ""
        for n in range(8)})), "nccl_variables", "WARNING", "NCCL_IB_DISABLE", "NCCL, Environment Variables"),
    fault("Nsight is injected", "h100", env(CUDA_INJECTION64_PATH="/opt/nsight/libToolsInjection64.so"), "injection",
        "WARNING", "CUDA_INJECTION64_PATH", "CUDA, injection variables"),
    fault("compute-sanitizer is preloaded", "rtx3090",
        env(LD_PRELOAD="/usr/local/cuda/compute-sanitizer/libsanitizer-collection.so"), "injection", "WARNING",
        "LD_PRELOAD", "ld.so(8)"),
    # Packages, interpreters, compilers
    fault("the abandoned package pynvml", "h100", torch(pynvml="11.5.0"), "pynvml_package", "WARNING", None,
        "PyPI, pynvml: deprecated"),
    fault("a file torch.py beside the script", "rtx4090", lambda made: made.files.update({"torch.py": ""}),
        "interpreter", "WARNING", "torch.py", "Python, module search path", touches=("interpreter",)),
    fault("another python has another torch", "l40s", lambda made: setattr(made, "path_torch",
        "/usr/lib/python3/dist-packages/torch"), "interpreter", "WARNING", "/opt/torch/bin/python", "gputune --python",
        touches=("interpreter",)),
    fault("no C compiler", "h100", needs(compiler=None), "compile_needs", "WARNING", "C compiler",
        "Triton, runtime/build.py", touches=("compile",)),
    fault("CC names no program", "a10g", lambda made: (needs(compiler=None)(made),
        made.env.update(CC="/opt/gcc/bin/gcc")), "compile_needs", "WARNING", "CC", "Triton, runtime/build.py",
        touches=("compile",)),
    fault("no C++ compiler", "cpu", needs(compiler_cxx=None), "compile_needs", "WARNING", "C++ compiler",
        "torch._inductor", touches=("compile",)),
    fault("no Python.h", "t4", needs(headers=False), "compile_needs", "WARNING", "Python.h",
        "Triton, runtime/build.py", touches=("compile",)),
    fault("no Triton", "a100_sxm", needs(triton=None), "compile_needs", "WARNING", "triton", "PyTorch, torch.compile",
        touches=("compile",)),
    fault("no folder for compiled code", "l4", lambda made: (made.closed.append("/var/cache/inductor"),
        needs(cache="/var/cache/inductor")(made), made.files.update({"/var/cache/inductor/x": ""}),
        made.env.update(TORCHINDUCTOR_CACHE_DIR="/var/cache/inductor")), "compile_needs", "WARNING",
        "TORCHINDUCTOR_CACHE_DIR", "torch._inductor, TORCHINDUCTOR_CACHE_DIR", touches=("compile",)),
]  # fmt: skip
