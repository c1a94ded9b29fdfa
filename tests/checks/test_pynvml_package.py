import pytest
from recorded import found

from gputune.checks import pynvml_package
from gputune.host import Unreadable


@pytest.mark.parametrize("version", ["8.0.4", "11.5.0", "13.0.1"])
def test_the_namesake_is_a_warning(version):
    [one] = found(pynvml_package, torch={"pynvml": version})
    assert one.severity == "WARNING"
    assert f"pynvml {version} " in one.message
    pip = "/opt/torch/.venv/bin/python3 -m pip"
    assert one.remedy == f"{pip} uninstall -y pynvml && {pip} install --force-reinstall nvidia-ml-py"


def test_an_interpreter_that_does_not_tell_its_file_is_python():
    [one] = found(pynvml_package, torch={"pynvml": "11.5.0", "executable": None})
    assert one.remedy.startswith("python3 -m pip uninstall")


@pytest.mark.parametrize("version", [None, "11.5.0"])
def test_it_is_asked_for_without_torch_too(version):
    torch = {"torch": None, "gaps": {"torch": "import torch: no module"}, "pynvml": version}
    assert [one.severity for one in found(pynvml_package, torch=torch)] == ["WARNING" if version else "OK"]


@pytest.mark.parametrize("torch", [Unreadable("no answer"), {"gaps": {"pynvml": "OSError: no answer"}}])
def test_packages_that_cannot_be_listed_are_unknown(torch):
    [one] = found(pynvml_package, torch=torch)
    assert one.severity == "UNKNOWN"
    assert "no answer" in one.message
