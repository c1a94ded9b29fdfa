"""Facts of a real GPU: NVML and torch agree on which one is which, and nothing is an error on a healthy machine."""

import json
import os
import subprocess
import sys
import time

import pytest

from gputune.facts.visible_gpus import visible

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
    print("\n", *(finding for finding in answer["findings"] if finding["severity"] == "WARNING"), sep="\n")
    assert not [finding for finding in answer["findings"] if finding["severity"] in ("ERROR", "UNKNOWN")]


COUNT = """
import torch
try:
    print(torch._C._cuda_getDeviceCount())
except RuntimeError:
    print(0)
"""


def test_cuda_visible_devices_is_read_as_cuda_reads_it(answer):
    uuids = [gpu["uuid"] for gpu in answer["facts"]["gpus"]]
    first = uuids[0]
    values = ["0", "+0", "-0", "00", "0gpu1", "0,", "0,,", "0,0", "99,0", f"0,{first}", "GPU-", first, first[:12]]
    values += [f"GPU-{first[4:].upper()}", first.lower(), f"{first},0", f"{first},{first}", ",".join(reversed(uuids))]
    for value in values:
        seen = subprocess.run(
            [sys.executable, "-c", COUNT],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": value},
        )
        assert (value, len(visible(value, uuids)[0])) == (value, int(seen.stdout))


def test_it_takes_at_most_three_seconds_more_than_torch_takes_to_start():
    def seconds(*words):
        started = time.monotonic()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        return time.monotonic() - started

    start = ["-c", "import torch; torch.cuda.get_device_properties(0)"]
    more = [seconds("-m", "gputune", "check") - seconds(*start) for _ in range(3)]
    print(f"\nbeyond torch's own start: {', '.join(f'{one:.2f}' for one in more)} s")
    assert sorted(more)[1] < 3
