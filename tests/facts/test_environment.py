"""The variables that torch and NVIDIA's libraries document and those that checks declare, and no others."""

import re
from pathlib import Path

import pytest
from recorded import facts_of

from gputune import checks, knobs
from gputune.facts.environment import NAMES

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
    "NVIDIA_JWT": "secret",
    "TRITON_Pass": "secret",
    "NCCL_COMM_ID": "10.0.0.1:1234",
    "TORCHINDUCTOR_REDIS_URL": "redis://secret@h",
    "CUDA_VISIBLE_DEVICES_": "secret",
    "cuda_visible_devices": "secret",
    "NVIDIA_REQUIRE_CUDA": "cuda>=13",
}


def test_only_what_matters_is_kept_sorted_by_name():
    kept = facts_of("cpu-only", environ=KEPT | OTHERS).environment
    assert list(kept.items()) == sorted(KEPT.items())


def test_a_variable_that_a_check_declares_is_kept_too():
    assert {"CC", "CXX"} <= checks.variables()
    assert facts_of("cpu-only", environ={"CC": "gcc-12"}).environment == {"CC": "gcc-12"}


@pytest.mark.parametrize("package", [checks, knobs])
def test_every_variable_that_gputune_speaks_of_is_kept(package):
    """As a name between quotes that begins as torch's and NVIDIA's do."""
    quoted = r"[\"']((?:CUBLAS|CUDA_|CUDNN|NCCL_|NVIDIA_|NVTX_|OMP_|MKL_|PYTORCH_|TORCH|TRITON_|LD_)[A-Z0-9_]+)[\"']"
    text = "".join(path.read_text() for path in Path(package.__file__).parent.glob("*.py"))
    found = set(re.findall(quoted, text))
    assert found
    assert not found - NAMES - checks.variables()


def test_ports_of_a_sanitizer_are_kept_under_any_name_and_nothing_else_is():
    kept = {"NV_SANITIZER_INJECTION_PORT_7": "49152"}
    others = {"NV_SANITIZER_INJECTION_LOGIN": "secret", "NV_SANITIZER_INJECTION_X": "123456", "NV_SANITIZER_Y": "1"}
    assert facts_of("cpu-only", environ=kept | others).environment == kept


def test_no_name_is_that_of_a_secret_or_of_another_machine():
    assert not [
        name for name in NAMES if re.search("KEY|TOKEN|SECRET|PASS|CRED|AUTH|JWT|URL|_ADDR$|COMM_ID|HOSTID", name)
    ]
    assert all(re.fullmatch("[A-Z][A-Z0-9_]+", name) for name in NAMES)
