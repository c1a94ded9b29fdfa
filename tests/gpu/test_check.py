"""Facts of a real GPU: NVML and torch agree on which one is which, and nothing is an error on a healthy machine."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def answer():
    result = subprocess.run(
        [sys.executable, "-m", "gputune", "check", "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout)


def test_every_gpu_is_mapped_to_its_torch_device_by_uuid(answer):
    import torch

    for gpu in answer["facts"]["gpus"]:
        uuid = torch.cuda.get_device_properties(gpu["torch_index"]).uuid
        assert gpu["uuid"] == f"GPU-{uuid}"


def test_libraries_are_the_loaded_ones(answer):
    import torch

    libraries = answer["facts"]["libraries"]
    assert libraries["torch"] == torch.__version__
    assert libraries["cublas"] == libraries["cublaslt"]
    assert libraries["cudnn"] == ".".join(str(part) for part in divmod_version(torch.backends.cudnn.version()))
    assert libraries["nccl"] == ".".join(str(part) for part in torch.cuda.nccl.version())


def divmod_version(number):
    return number // 10000, number % 10000 // 100, number % 100


def test_a_healthy_machine_has_no_error_and_nothing_unknown(answer):
    bad = [finding for finding in answer["findings"] if finding["severity"] in ("ERROR", "UNKNOWN")]
    assert not bad
