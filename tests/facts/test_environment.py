"""The variables of torch and NVIDIA's libraries and those that checks declare, and no others."""

from recorded import facts_of

from gputune import checks

KEPT = {
    "CUDA_LAUNCH_BLOCKING": "1",
    "NCCL_DEBUG": "INFO",
    "LD_PRELOAD": "x.so",
    "OMP_NUM_THREADS": "3",
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


def test_only_what_matters_is_kept_sorted_by_name():
    kept = facts_of("cpu-only", environ=KEPT | OTHERS).environment
    assert list(kept.items()) == sorted(KEPT.items())


def test_a_variable_that_a_check_declares_is_kept_too():
    assert {"CC", "CXX"} <= checks.variables()
    assert facts_of("cpu-only", environ={"CC": "gcc-12"}).environment == {"CC": "gcc-12"}
