"""The environment variables that change how torch and NVIDIA's libraries run."""

from collections.abc import Collection

from gputune.host import Host

PREFIXES = (
    "ACCELERATE_", "CUBLAS", "CUDA_", "CUDNN", "GOMP_", "KMP_", "LD_", "MKL_", "NCCL_", "NSYS_", "NVIDIA_", "NVTX_",
    "NV_SANITIZER", "OMP_", "OPENBLAS_", "PYTORCH_", "TORCH", "TRITON_",
)  # fmt: skip
"""Beginnings of names to keep, except where a secret is suggested: `check --json` and bug reports print the values."""

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""0 forbids cuBLAS and cuDNN to use TF32, and 1 forces it on matmuls and RNNs, whatever torch's flags say."""

_SECRET = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH")  # NVIDIA_API_KEY, for one
_LONG = ("NVIDIA_REQUIRE_CUDA",)  # 3000 characters in NVIDIA's images, read by the container toolkit only


def read(host: Host, variables: Collection[str] = ()) -> dict[str, str]:
    """Values by name, sorted by name: of the `variables` and of those that the prefixes cover."""
    covered = (name for name in host.environ if name.startswith(PREFIXES) and name not in _LONG)
    kept = {name for name in covered if not any(word in name for word in _SECRET)}
    return {name: host.environ[name] for name in sorted(kept | set(variables) & set(host.environ))}
