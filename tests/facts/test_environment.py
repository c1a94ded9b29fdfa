"""The variables that torch and NVIDIA's libraries heed, and no others."""

from recorded import facts_of

HEEDED = {
    "CUDA_LAUNCH_BLOCKING": "1",
    "NCCL_DEBUG": "INFO",
    "LD_PRELOAD": "x.so",
    "OMP_NUM_THREADS": "3",
    "CC": "gcc-12",
    "CUDA_VISIBLE_DEVICES": "",
    "NVIDIA_DRIVER_CAPABILITIES": "compute",
    "NVIDIA_TF32_OVERRIDE": "0",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "",
}
OTHERS = {
    "AWS_SECRET_ACCESS_KEY": "secret",
    "PASSWORD": "secret",
    "NVIDIA_API_KEY": "secret",
    "TORCH_AUTH_TOKEN": "secret",
    "CCACHE_DIR": "/c",
    "NVIDIA_REQUIRE_CUDA": "cuda>=13",
}


def test_only_what_matters_is_kept():
    assert facts_of("cpu-only", environ=HEEDED | OTHERS).environment == HEEDED


def test_they_are_in_the_order_of_names():
    assert list(facts_of("cpu-only", environ=HEEDED).environment) == sorted(HEEDED)
