"""Which dtypes the hardware has, what the environment forces, and torch's flags beside their defaults."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import RecordedHost, facts_of

from gputune.facts import precision


@pytest.mark.parametrize(
    ("capability", "dtypes"),
    [
        ("6.0", ()),
        ("6.1", ()),
        ("6.2", ()),
        ("7.0", ("float16",)),
        ("7.2", ("float16",)),
        ("7.5", ("float16",)),
        ("8.0", ("float16", "bfloat16", "tf32")),
        ("8.6", ("float16", "bfloat16", "tf32")),
        ("8.7", ("float16", "bfloat16", "tf32")),
        ("8.9", ("float16", "bfloat16", "tf32", "float8")),
        ("9.0", ("float16", "bfloat16", "tf32", "float8")),
        ("10.0", ("float16", "bfloat16", "tf32", "float8")),
        ("12.0", ("float16", "bfloat16", "tf32", "float8")),
        ("12.1", ("float16", "bfloat16", "tf32", "float8")),
        (None, ()),
        ("nonsense", ()),
    ],
)
def test_tensor_core_dtypes(capability, dtypes):
    assert precision.tensor_core_dtypes(capability) == dtypes


ALL = "Tensor Cores compute in float16, bfloat16, tf32 and float8"


@pytest.mark.parametrize(
    ("capability", "name", "text"),
    [
        ("9.0", "NVIDIA H200", f"Hopper; {ALL}"),
        ("8.0", "NVIDIA A100-SXM4-80GB", "Ampere; Tensor Cores compute in float16, bfloat16 and tf32"),
        ("8.6", "NVIDIA A10G", "Ampere; Tensor Cores compute in float16, bfloat16 and tf32"),
        ("8.9", "NVIDIA L4", f"Ada; {ALL}"),
        ("10.3", "NVIDIA GB300", f"Blackwell; {ALL}"),
        ("10.7", "NVIDIA VR200", f"Rubin; {ALL}"),
        ("12.1", "NVIDIA GB10", f"Blackwell; {ALL}"),
        ("7.5", "Tesla T4", "Turing; Tensor Cores compute in float16; torch emulates bfloat16"),
        ("7.5", "NVIDIA GeForce GTX 1660 Ti", "Turing; no Tensor Cores; torch emulates bfloat16"),
        ("7.0", "Tesla V100-SXM2-32GB", "Volta; Tensor Cores compute in float16; torch emulates bfloat16"),
        ("6.1", "NVIDIA GeForce GTX 1080", "Pascal; no Tensor Cores; torch emulates bfloat16"),
        ("99.0", "a GPU of the future", ALL),
        (None, "", ""),
    ],
)
def test_a_gpu_s_architecture_and_the_dtypes_of_its_tensor_cores_in_words(capability, name, text):
    assert precision.hardware_text(capability, name) == text


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce GTX 1630", "NVIDIA GeForce GTX 1650 SUPER", "NVIDIA GeForce GTX 1660 Ti with Max-Q Design",
        "NVIDIA GeForce MX450", "NVIDIA T400 4GB", "NVIDIA T1200 Laptop GPU", "Quadro T2000", "NVIDIA CMP 30HX",
    ],
)  # fmt: skip
def test_small_turing_chips_have_no_tensor_cores(name):
    assert precision.tensor_core_dtypes("7.5", name) == ()


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Tesla T4", "7.5"), ("NVIDIA T4G", "7.5"), ("NVIDIA GeForce RTX 2060", "7.5"), ("NVIDIA TITAN RTX", "7.5"),
        ("Quadro RTX 5000", "7.5"), ("Tesla T40 24GB", "7.5"), ("NVIDIA GeForce GTX 1650", "9.0"),
    ],
)  # fmt: skip
def test_other_gpus_keep_theirs(name, capability):
    assert "float16" in precision.tensor_core_dtypes(capability, name)


@pytest.mark.parametrize(
    ("version", "matmul"),
    [
        ("1.7.1", True),
        ("1.11.0", True),
        ("1.12.0", False),
        ("2.4.0+cu121", False),
        ("2.13.0a0+git1", False),
        ("2.15", False),
    ],
)
def test_the_matmul_flag_s_default_changed_in_1_12_and_cudnn_s_never(version, matmul):
    defaults = precision.default_flags(version)
    assert (defaults.matmul_tf32, defaults.cudnn_tf32) == (matmul, True)


@given(st.text())
def test_any_version_gives_flags_or_none(version):
    assert isinstance(precision.default_flags(version), precision.Flags | None)


def test_a_version_that_is_no_number_has_no_known_defaults():
    assert facts_of(torch={"torch": "main"}).precision.defaults is None


def test_an_untouched_torch_reads_its_defaults():
    found = facts_of().precision
    assert found.flags == found.defaults


def test_without_torch_there_are_no_flags():
    found = precision.read(RecordedHost(), {})
    assert (found.flags, found.defaults) == (None, None)


@pytest.mark.parametrize(
    ("flags", "has"),
    [("fpu avx2", False), ("fpu avx512_bf16", True), ("amx_tile amx_bf16", True), ("asimd bf16", True)],
)
def test_bfloat16_of_the_cpu(flags, has):
    assert facts_of("cpu-only", files={"/proc/cpuinfo": f"flags : {flags}\n"}).precision.cpu_bfloat16 is has
