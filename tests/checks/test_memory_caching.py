import pytest
from recorded import found

from gputune.checks import memory_caching

VARIABLE = "PYTORCH_NO_CUDA_MEMORY_CACHING"


def finding(value, torch="2.11.0"):
    [only] = found(memory_caching, environ={VARIABLE: value}, torch={"torch": torch})
    return only


@pytest.mark.parametrize("torch", ["2.4.1", "2.11.0", "custom", None])
def test_switched_off_is_a_warning(torch):
    one = finding("1", torch)
    assert (one.severity, one.subject) == ("WARNING", VARIABLE)
    assert one.message.startswith(f"{VARIABLE}=1:")
    assert one.remedy == f"unset {VARIABLE}"


@pytest.mark.parametrize("value", ["0", "", "true"])
@pytest.mark.parametrize(("torch", "severity"), [("2.7.1", "WARNING"), ("2.8.0", "OK"), ("2.11.0+cu130", "OK")])
def test_before_2_8_any_value_counts(value, torch, severity):
    one = finding(value, torch)
    assert one.severity == severity
    assert f"{VARIABLE}={value}" in one.message


def test_without_torch_s_version_another_value_s_effect_is_unknown():
    assert finding("0", None).severity == "UNKNOWN"


@pytest.mark.parametrize("torch", ["2.4.1", "2.11.0"])
def test_memory_is_cached(torch):
    one = finding(None, torch)
    assert (one.severity, one.message) == ("OK", "torch keeps freed GPU memory for the next tensor")


def test_the_allocator_s_other_variable_does_not_count():
    assert [one.severity for one in found(memory_caching, environ={"PYTORCH_CUDA_ALLOC_CONF": "x:1"})] == ["OK"]
