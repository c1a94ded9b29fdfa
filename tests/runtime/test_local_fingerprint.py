"""This machine's fingerprint, from recorded machines and without torch, and whether a profile's device is missing."""

import json
import sys
from copy import deepcopy
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from making import environ, python
from recorded import MACHINES, RecordedHost, facts_of

from gputune.facts.unimported_torch import installed_torch
from gputune.host import Host, Unreadable
from gputune.profile import Fingerprint, fingerprint
from gputune.runtime.local_fingerprint import lacks_device, local_fingerprint

NVML = json.loads((MACHINES / "nvidia-h200-x8" / "answers.json").read_text())["nvml"]


def made_torch(version: str, **more: Any) -> ModuleType:
    made = ModuleType("torch")
    vars(made).update(__version__=version, version=SimpleNamespace(**more))
    return made


@pytest.fixture
def cuda_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has imported the recorded machine's torch: the one here may be for the CPU."""
    monkeypatch.setitem(sys.modules, "torch", made_torch("2.11.0+cu130", cuda="13.0"))


@pytest.mark.usefixtures("cuda_torch")
class TestGpu:
    @pytest.mark.parametrize("machine", ["nvidia-h200-x1", "nvidia-h200-x8"])
    def test_it_is_the_fingerprint_of_the_probe_but_for_what_only_torch_tells(self, machine: str) -> None:
        measured = fingerprint(facts_of(machine), "cuda:0")
        now = local_fingerprint(RecordedHost(machine))
        same = ["gpu", "gpu_count", "compute_capability", "driver", "torch", "cpu", "cpu_budget", "device"]
        assert measured.differences(now, same) == []
        assert (now.cuda, now.cublas, now.cudnn) == ("13.0", None, None)

    @pytest.mark.parametrize(
        ("setting", "count"),
        [
            (None, 8),
            ("0", 1),
            ("3,1", 2),
            ("", 0),
            ("-1", 0),
            ("0,-1,1", 1),
            ("1,0,1", 0),
            ("8", 0),
            ("+7", 1),
            ("0x", 1),
        ],
    )
    def test_cuda_visible_devices(self, setting: str | None, count: int) -> None:
        now = local_fingerprint(RecordedHost("nvidia-h200-x8", environ={"CUDA_VISIBLE_DEVICES": setting}))
        assert now.gpu_count == count
        assert (now.gpu, now.compute_capability, now.driver) == (
            ("NVIDIA H200", "9.0", "580.159.04") if count else (None, None, None)
        )

    def test_a_uuid_may_be_short(self) -> None:
        uuid = NVML["devices"][5]["UUID"]
        now = local_fingerprint(RecordedHost("nvidia-h200-x8", environ={"CUDA_VISIBLE_DEVICES": uuid[:12]}))
        assert now.gpu_count == 1

    def test_the_first_visible_gpu_counts_with_those_like_it(self) -> None:
        mixed = deepcopy(NVML)
        mixed["devices"][0] |= {"Name": "NVIDIA L4", "CudaComputeCapability": [8, 9]}
        first = local_fingerprint(RecordedHost("nvidia-h200-x8", nvml=mixed))
        assert (first.gpu, first.gpu_count, first.compute_capability) == ("NVIDIA L4", 1, "8.9")
        second = local_fingerprint(
            RecordedHost("nvidia-h200-x8", nvml=mixed, environ={"CUDA_VISIBLE_DEVICES": "1,2,0"})
        )
        assert (second.gpu, second.gpu_count, second.compute_capability) == ("NVIDIA H200", 2, "9.0")

    def test_what_nvml_does_not_answer_is_none(self) -> None:
        silent = deepcopy(NVML)
        silent["devices"][0]["CudaComputeCapability"] = {"NVMLError": "Unknown Error"}
        now = local_fingerprint(RecordedHost("nvidia-h200-x8", nvml=silent))
        assert now.compute_capability is None
        assert now.cpu_budget is not None

    def test_where_nvml_cannot_name_the_gpu_torch_does(self) -> None:
        nameless, sliced = deepcopy(NVML), deepcopy(NVML)
        nameless["devices"][0]["Name"] = {"NVMLError": "Unknown Error"}
        sliced["devices"][0]["MigMode"] = [1, 1]
        for nvml in (Unreadable("NVML Shared Library Not Found"), nameless, sliced):
            now = local_fingerprint(RecordedHost("nvidia-h200-x8", nvml=nvml))
            assert (now.gpu, now.gpu_count, now.compute_capability, now.driver) == ("NVIDIA H200", 8, "9.0", None)
        now = local_fingerprint(RecordedHost("nvidia-h200-x8", environ={"CUDA_VISIBLE_DEVICES": "MIG-1234"}))
        assert now.gpu == "NVIDIA H200"

    def test_without_nvml_and_without_a_device_file_there_is_no_gpu(self) -> None:
        now = local_fingerprint(RecordedHost("cpu-only"))
        assert (now.gpu, now.gpu_count, now.driver) == (None, 0, None)


def test_a_torch_for_the_cpu_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", made_torch("2.13.0+cpu", cuda=None))
    now = local_fingerprint(RecordedHost("nvidia-h200-x1"))
    assert (now.gpu, now.device) == (None, now.cpu)


def test_an_unreadable_machine_is_all_none() -> None:
    class Nothing(Host):
        def read(self, path: str) -> str:
            raise Unreadable(path)

        def names(self, folder: str) -> list[str]:
            return []

        def affinity(self) -> frozenset[int]:
            raise Unreadable("affinity")

        def nvml(self) -> Any:
            raise Unreadable("NVML")

    now = local_fingerprint(Nothing(environ={}))
    assert (now.gpu, now.cpu, now.cpu_budget) == (None, None, None)


@pytest.mark.slow
def test_this_machine_is_read_without_importing_torch() -> None:
    code = """
import sys
from pathlib import Path
from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint
print(local_fingerprint(Host()).torch, "torch" in sys.modules)
import types
sys.modules["torch"] = types.SimpleNamespace(__version__="9.9.9")
print(local_fingerprint(Host()).torch)
"""
    assert python("-c", code, env=environ()).stdout == f"{installed_torch()[0]} False\n9.9.9\n"


EPYC = "AMD EPYC 9684X"
CPUINFO = f"processor : 0\nmodel name : {EPYC}\n"


@pytest.mark.parametrize(
    ("files", "measured", "lacks"),
    [
        (["proc/cpuinfo"], Fingerprint(gpu="NVIDIA H200", cpu=EPYC), True),
        (["proc/cpuinfo", "dev/nvidia0"], Fingerprint(gpu="NVIDIA H200", cpu="another"), False),
        (["proc/cpuinfo", "dev/nvidia0"], Fingerprint(cpu=EPYC), False),
        (["proc/cpuinfo"], Fingerprint(cpu="another"), True),
        ([], Fingerprint(cpu=EPYC), False),
        (["proc/cpuinfo"], Fingerprint(), False),
    ],
    ids=["no GPU", "some GPU", "a CPU's, beside a GPU", "another CPU", "nothing can be read", "of nothing"],
)
def test_a_device_is_missing_where_files_say_so(
    tmp_path: Path, files: list[str], measured: Fingerprint, lacks: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(CPUINFO)
    assert lacks_device(Host(root=tmp_path), measured) is lacks
