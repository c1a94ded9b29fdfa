from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import torch_architecture


def findings(machine="nvidia-h200-x1", capability="9.0", **libraries):
    facts = facts_of(machine)
    gpus = tuple(replace(gpu, compute_capability=capability) for gpu in facts.gpus)
    facts = replace(facts, gpus=gpus, libraries=replace(facts.libraries, **libraries))
    return list(torch_architecture.check(facts, ()))


@pytest.mark.parametrize(
    ("name", "capability", "runs"),
    [
        ("sm_90", (9, 0), True),
        ("sm_86", (8, 9), True),
        ("sm_80", (8, 6), True),
        ("sm_89", (8, 6), False),
        ("sm_80", (9, 0), False),
        ("sm_90", (10, 0), False),
        ("sm_100", (10, 3), True),
        ("sm_100", (12, 0), False),
        ("sm_120", (12, 1), True),
        ("compute_80", (9, 0), True),
        ("compute_90", (12, 0), True),
        ("compute_90", (9, 0), True),
        ("compute_90", (8, 9), False),
        ("sm_90a", (9, 0), True),
        ("compute_90a", (10, 0), False),
        ("sm_100f", (10, 3), True),
        ("compute_100f", (12, 0), False),
        ("gfx942", (9, 0), False),
    ],
)
def test_what_runs_where(name, capability, runs):
    assert torch_architecture.runs(name, capability) is runs


@pytest.mark.parametrize("capability", ["6.1", "7.0", "11.0", "13.0"])
def test_a_gpu_that_torch_has_no_kernels_for(capability):
    [found] = findings(capability=capability)
    assert found.severity == "ERROR"
    assert found.subject == "GPU 0"
    assert f"sm_{capability.replace('.', '')}" in found.remedy


def test_ptx_helps_a_newer_gpu():
    [found] = findings(capability="13.0", architectures=("sm_90", "compute_90"))
    assert found.severity == "OK"
    assert "compute_90" in found.message


def test_one_finding_for_each_gpu():
    found = findings("nvidia-h200-x8", "7.0")
    assert [each.subject for each in found] == [f"GPU {index}" for index in range(8)]
    assert {each.severity for each in found} == {"ERROR"}


@pytest.mark.parametrize("fault", [{"capability": None}, {"architectures": ()}, {"torch": None}])
def test_unread(fault):
    assert findings(**fault)[0].severity == "UNKNOWN"


def test_a_build_without_cuda():
    assert findings(cuda=None)[0].severity == "NOT_APPLICABLE"
