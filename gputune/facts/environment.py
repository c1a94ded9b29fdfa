"""The variables that change how torch and NVIDIA's libraries run, as they are set here."""

from __future__ import annotations

from gputune.host import Host

PREFIXES = (
    "ACCELERATE_", "CUBLAS", "CUDA_", "CUDNN", "GOMP_", "KMP_", "LD_", "MKL_", "NCCL_", "NSYS_", "NVIDIA_", "NVTX_",
    "NV_SANITIZER", "OMP_", "OPENBLAS_", "PYTORCH_", "TORCH", "TRITON_",
)  # fmt: skip
"""Names that begin otherwise are left alone, and of these the ones that a secret could hide behind."""

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""0 forbids TF32 to cuBLAS and cuDNN and 1 forces it on matmuls and RNNs, whatever torch's flags say."""

NAMES = ("CC", "CXX")  # the compilers that torch.compile calls
_SECRET = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH")  # NVIDIA_API_KEY, for one
_LONG = ("NVIDIA_REQUIRE_CUDA",)  # three thousand characters in NVIDIA's images, which only the container toolkit reads


def read(host: Host) -> dict[str, str]:
    """Name to value, in the order of names."""
    names = sorted(name for name in host.environ if _heeded(name))
    return {name: host.environ[name] for name in names}


def _heeded(name: str) -> bool:
    if name in _LONG or any(word in name for word in _SECRET):
        return False
    return name in NAMES or name.startswith(PREFIXES)
