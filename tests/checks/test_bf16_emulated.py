from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import bf16_emulated


def findings(*capabilities):
    facts = facts_of("nvidia-h200-x8")
    gpus = tuple(replace(gpu, compute_capability=one) for gpu, one in zip(facts.gpus, capabilities, strict=False))
    return list(bf16_emulated.check(replace(facts, gpus=gpus), ()))


@pytest.mark.parametrize("capability", ["7.0", "7.5"])
def test_emulated_where_float16_is_native(capability):
    [found] = findings(capability)
    assert found.severity == "WARNING"
    assert "float16" in found.remedy
    assert "GradScaler" in found.remedy


def test_emulated_where_nothing_is_native():
    [found] = findings("6.1")
    assert found.severity == "WARNING"
    assert "float32" in found.remedy


@pytest.mark.parametrize("name", ["NVIDIA GeForce GTX 1650", "NVIDIA GeForce GTX 1660 Ti", "NVIDIA T1000 8GB"])
def test_a_gpu_of_7_5_without_tensor_cores_is_not_sent_to_float16(name):
    facts = facts_of()
    gpu = replace(facts.gpus[0], compute_capability="7.5", name=name)
    [found] = bf16_emulated.check(replace(facts, gpus=(gpu,)), ())
    assert (found.severity, found.remedy) == ("WARNING", bf16_emulated.USE_FLOAT32)


@pytest.mark.parametrize("capability", ["8.0", "8.6", "8.7", "9.0", "10.0", "12.0"])
def test_native(capability):
    assert [found.severity for found in findings(capability)] == ["OK"]


def test_an_unread_capability():
    assert [found.severity for found in findings(None)] == ["UNKNOWN"]


def test_each_gpu_is_asked_for_itself():
    found = findings("9.0", "7.5")
    assert [(each.subject, each.severity) for each in found] == [("GPU 0", "OK"), ("GPU 1", "WARNING")]


@pytest.mark.parametrize(("capability", "value"), [([7, 5], "fp16"), ([6, 1], "no")])
def test_accelerate_s_request_is_changed_to_what_the_gpu_multiplies(capability, value):
    environ = {"ACCELERATE_MIXED_PRECISION": "bf16"}
    facts = facts_of(gpu={"Name": "Tesla T4", "CudaComputeCapability": capability}, environ=environ)
    [one] = bf16_emulated.check(facts, ())
    assert one.remedy == f"export ACCELERATE_MIXED_PRECISION={value}"
