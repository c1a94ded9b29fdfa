import pytest
from recorded import found

from gputune.checks import device_assertions

TORCH_S, BUILD_S = "PYTORCH_USE_CUDA_DSA", "TORCH_USE_CUDA_DSA"


@pytest.mark.parametrize("names", [(TORCH_S,), (BUILD_S,), (TORCH_S, BUILD_S)])
def test_a_variable_that_is_left_on_is_a_warning(names):
    [one] = found(device_assertions, environ=dict.fromkeys(names, "1"))
    assert (one.severity, one.subject) == ("WARNING", names[0])
    assert one.message == f"left over from debugging: {', '.join(f'{name}=1' for name in names)}"
    assert one.remedy == f"unset {' '.join(names)}"


@pytest.mark.parametrize("name", [TORCH_S, BUILD_S])
@pytest.mark.parametrize("value", [None, "", "0"])
def test_off(name, value):
    assert [one.severity for one in found(device_assertions, environ={name: value})] == ["OK"]


def test_only_what_is_on_is_named():
    [one] = found(device_assertions, environ={TORCH_S: "0", BUILD_S: "1"})
    assert (one.subject, one.remedy) == (BUILD_S, f"unset {BUILD_S}")
