"""Which dtypes the hardware has, what the environment forces, and torch's flags beside their defaults."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import RecordedHost, facts_of

from gputune.facts import precision


@pytest.mark.parametrize(
    ("capability", "dtypes"),
    [
        ("6.1", ()),
        ("7.0", ("float16",)),
        ("7.5", ("float16",)),
        ("8.0", ("float16", "bfloat16", "tf32")),
        ("8.6", ("float16", "bfloat16", "tf32")),
        ("8.9", ("float16", "bfloat16", "tf32", "float8")),
        ("9.0", ("float16", "bfloat16", "tf32", "float8")),
        ("12.1", ("float16", "bfloat16", "tf32", "float8")),
        (None, ()),
    ],
)
def test_tensor_core_dtypes(capability, dtypes):
    assert precision.tensor_core_dtypes(capability) == dtypes


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
