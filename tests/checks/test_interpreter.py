import sys

import pytest
from recorded import RecordedHost, found

from gputune.checks import interpreter
from gputune.host import Unreadable

OWN = RecordedHost().torch["folder"]
VENV = "/home/me/venv"
THEIRS = f"{VENV}/lib/python3.11/site-packages/torch"


def finding(*files, executable=sys.executable, path=f"{VENV}/bin", folder=OWN):
    """gputune runs under `executable`, whose torch is in `folder`."""
    laid = dict.fromkeys(files, "")
    [only] = found(interpreter, torch={"executable": executable, "folder": folder}, environ={"PATH": path}, files=laid)
    return only


@pytest.mark.parametrize("python", ["python", "python3"])
def test_another_torch_is_the_one_that_python_uses(python):
    one = finding(f"{VENV}/bin/{python}", f"{THEIRS}/version.py")
    assert (one.severity, one.subject) == ("WARNING", f"{VENV}/bin/{python}")
    assert OWN in one.message
    assert THEIRS in one.message
    assert one.remedy == f"gputune check --python {VENV}/bin/{python}"


def test_gputune_has_no_torch_and_python_has():
    one = finding(f"{VENV}/bin/python", f"{THEIRS}/version.py", folder=None)
    assert one.severity == "WARNING"
    assert "no torch" in one.message


@pytest.mark.parametrize(
    "place", ["lib/python3.11/site-packages", "lib/python3/dist-packages", "local/lib/python3.11/dist-packages"]
)
def test_wherever_a_python_keeps_its_packages(place):
    one = finding("/usr/bin/python3", f"/usr/{place}/torch/version.py", path="/usr/bin")
    assert one.severity == "WARNING"
    assert f"/usr/{place}/torch" in one.message


def test_the_same_torch():
    one = finding(f"{VENV}/bin/python", f"{THEIRS}/version.py", folder=THEIRS)
    assert (one.severity, one.message) == ("OK", f"looked at: {THEIRS}")


def test_another_was_asked_for():
    assert finding(f"{VENV}/bin/python", f"{THEIRS}/version.py", executable="/opt/bin/python").severity == "OK"


@pytest.mark.parametrize("files", [(), (f"{VENV}/bin/python",), (f"{THEIRS}/version.py",)])
def test_python_has_no_torch_or_is_not_here(files):
    assert finding(*files).severity == "OK"


def test_without_any_torch_the_interpreter_is_named():
    assert sys.executable in finding(folder=None).message


def test_no_answer_is_unknown():
    [one] = found(interpreter, torch=Unreadable("no answer"))
    assert one.severity == "UNKNOWN"
    assert "no answer" in one.message
