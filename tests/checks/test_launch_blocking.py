import pytest
from recorded import found

from gputune.checks import launch_blocking

VARIABLE = "CUDA_LAUNCH_BLOCKING"


@pytest.mark.parametrize("value", ["1", "2", "true", "on"])
def test_on_is_a_warning(value):
    [one] = found(launch_blocking, environ={VARIABLE: value})
    assert (one.severity, one.subject) == ("WARNING", VARIABLE)
    assert one.message.startswith(f"{VARIABLE}={value}:")
    assert one.remedy == f"unset {VARIABLE}"


@pytest.mark.parametrize("value", [None, "", " ", "0", " 0 ", "false", "OFF", "no"])
def test_off(value):
    assert [one.severity for one in found(launch_blocking, environ={VARIABLE: value})] == ["OK"]


@pytest.mark.parametrize("name", ["CUDA_LAUNCH_BLOCK", "LAUNCH_BLOCKING"])
def test_only_the_variable_itself_counts(name):
    assert [one.severity for one in found(launch_blocking, environ={name: "1"})] == ["OK"]
