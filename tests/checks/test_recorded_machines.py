"""Every check on every recorded machine: nothing to complain about, and nothing called healthy that was not read."""

from dataclasses import replace

import pytest
from recorded import facts_of

from gputune import checks
from gputune.facts import Cpu, Driver, Gap, Libraries, Memory, Precision
from gputune.host import Unreadable

HEALTHY = {"OK", "NOT_APPLICABLE"}
LAPTOPS = {
    "as it is": {},
    "without torch": {"torch": Unreadable("no answer")},
    "with an old torch": {"torch": {"torch": "1.13.1", "version": "1.13.1"}},
    "with a CUDA build of torch": {"torch": {"cuda": "13.0", "devices": [], "arch_list": ["sm_90"]}},
    "with GPUs hidden": {"environ": {"CUDA_VISIBLE_DEVICES": ""}},
    "with a TF32 override": {"environ": {"NVIDIA_TF32_OVERRIDE": "1", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "TRUE"}},
    "with an image's void": {"environ": {"NVIDIA_VISIBLE_DEVICES": "void", "NVIDIA_DRIVER_CAPABILITIES": "all"}},
    "in WSL": {"files": {"/dev/dxg": ""}},
    "with a small /dev/shm": {"shm": [4096, 4096, 16384, 1, 1, 1, 1, 1, 0, 255]},
}


@pytest.mark.parametrize("name", checks.names())
@pytest.mark.parametrize("machine", ["nvidia-h200-x1", "nvidia-h200-x8", "cpu-only"])
def test_no_complaint_about_a_recorded_machine(machine, name):
    findings = list(checks.load(name).check(facts_of(machine), ()))
    assert findings
    assert {finding.severity for finding in findings} <= HEALTHY
    assert {finding.check for finding in findings} == {name}


@pytest.mark.parametrize("name", checks.names())
def test_on_the_h200_everything_applies(name):
    assert {finding.severity for finding in checks.load(name).check(facts_of(), ())} == {"OK"}


@pytest.mark.parametrize("laptop", LAPTOPS)
def test_nothing_is_an_error_on_a_laptop_without_a_gpu(laptop):
    findings = checks.run(facts_of("cpu-only", **LAPTOPS[laptop]))
    assert "ERROR" not in {finding.severity for finding in findings}
    assert not [finding for finding in findings if "failed" in finding.message]


@pytest.mark.parametrize("name", checks.names())
def test_nothing_is_healthy_beside_a_gpu_of_which_nothing_was_read(name):
    facts = facts_of()
    blind = replace(
        facts,
        gpus=(),
        driver=Driver(nvml=False),
        libraries=Libraries(),
        precision=Precision(),
        cpu=Cpu(logical_count=16, affinity_count=16, budget=16),
        memory=Memory(),
        gaps=tuple(Gap(fact=fact, reason="unread") for fact in ("libraries.torch", "driver.nvml", "cpu.quota")),
    )
    assert not {finding.severity for finding in checks.load(name).check(blind, ())} & HEALTHY
