from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import tf32_override

NVIDIA, TORCH = "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"


def findings(environ, matmul=False, cudnn=True, capability="9.0"):
    facts = facts_of(environ=environ)
    flags = replace(facts.precision.flags, matmul_tf32=matmul, cudnn_tf32=cudnn)
    gpus = tuple(replace(gpu, compute_capability=capability) for gpu in facts.gpus)
    return list(tf32_override.check(replace(facts, gpus=gpus, precision=replace(facts.precision, flags=flags)), ()))


def test_nothing_set():
    [found] = findings({})
    assert found.severity == "OK"


@pytest.mark.parametrize(
    ("value", "matmul", "cudnn", "against"),
    [
        ("0", False, True, "cuDNN on"),
        ("0", True, True, "matmul and cuDNN on"),
        ("1", False, True, "matmul off"),
        ("1", False, False, "matmul and cuDNN off"),
    ],
)
def test_nvidia_s_variable_against_the_flags(value, matmul, cudnn, against):
    [found] = findings({NVIDIA: value}, matmul, cudnn)
    assert found.severity == "WARNING"
    assert f"({against})" in found.message
    assert found.remedy == f"unset {NVIDIA}"


@pytest.mark.parametrize(("value", "flags"), [("0", False), ("1", True)])
def test_nvidia_s_variable_with_the_flags(value, flags):
    [found] = findings({NVIDIA: value}, flags, flags)
    assert found.severity == "OK"


@pytest.mark.parametrize("flag", [None, True])
def test_flags_that_were_not_read_prove_no_agreement(flag):
    [found] = findings({NVIDIA: "1"}, flag, None)
    assert found.severity == "WARNING"
    assert "(not read)" in found.message


@pytest.mark.parametrize("value", ["", "true", "2"])
def test_a_value_of_unknown_meaning(value):
    assert [found.severity for found in findings({NVIDIA: value})] == ["WARNING"]


@pytest.mark.parametrize(("value", "severity"), [("1", "OK"), ("0", "OK"), ("TRUE", "WARNING"), ("", "WARNING")])
def test_torch_s_variable_counts_only_as_0_or_1(value, severity):
    [found] = findings({TORCH: value})
    assert (found.severity, found.subject) == (severity, TORCH)


@pytest.mark.parametrize(("value", "flag"), [("1", "flag on"), ("0", "flag off")])
def test_what_torch_s_variable_does_is_said(value, flag):
    assert flag in findings({TORCH: value})[0].message


def test_both_set():
    assert [found.subject for found in findings({NVIDIA: "0", TORCH: "1"})] == [NVIDIA, TORCH]


def test_a_gpu_without_tf32():
    [found] = findings({NVIDIA: "0"}, capability="7.5")
    assert found.severity == "NOT_APPLICABLE"


def test_a_gpu_of_unknown_capability_may_have_tf32():
    [found] = findings({NVIDIA: "0"}, capability=None)
    assert found.severity == "WARNING"


def test_no_gpu():
    [found] = tf32_override.check(facts_of("cpu-only", environ={NVIDIA: "0"}), ())
    assert found.severity == "NOT_APPLICABLE"
