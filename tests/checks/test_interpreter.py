import pytest
from recorded import RecordedHost, found

from gputune.checks import interpreter
from gputune.host import Unreadable

OWN = RecordedHost().torch["folder"]
GPUTUNE = "/opt/gputune/bin/python"
PYTHON = "/home/me/venv/bin/python"
THEIRS = "/home/me/venv/lib/python3.11/site-packages/torch"


def finding(where, executable=GPUTUNE, folder=OWN, python=PYTHON):
    """gputune runs under `executable`, whose torch is in `folder`; `python` answers that its own is in `where`."""
    torch = {"executable": executable, "folder": folder}
    answer = where if isinstance(where, Unreadable) else {"folder": where}
    environ = {"PATH": "/home/me/venv/bin"}
    [only] = found(interpreter, torch=torch, environ=environ, files={python: ""}, where=answer, own_python=GPUTUNE)
    return only


@pytest.mark.parametrize("name", ["python", "python3"])
def test_another_torch_is_the_one_that_python_uses(name):
    one = finding(THEIRS, python=f"/home/me/venv/bin/{name}")
    assert (one.severity, one.subject) == ("WARNING", f"/home/me/venv/bin/{name}")
    assert OWN in one.message
    assert THEIRS in one.message
    assert one.remedy == f"gputune check --python /home/me/venv/bin/{name}"


def test_gputune_has_no_torch_and_python_has():
    one = finding(THEIRS, folder=None)
    assert one.severity == "WARNING"
    assert "no torch" in one.message


def test_the_same_torch():
    one = finding(THEIRS, folder=THEIRS)
    assert (one.severity, one.message) == ("OK", f"gputune examined {THEIRS}")


def test_another_was_asked_for():
    one = finding(THEIRS, executable="/opt/bin/python")
    assert (one.severity, one.message) == ("OK", f"gputune examined {OWN}, as --python requested")


def test_python_has_no_torch():
    assert finding(None).severity == "OK"


def test_there_is_no_python_on_the_path():
    assert finding(THEIRS, python="/elsewhere/python").severity == "OK"


def test_a_python_that_does_not_answer_is_unknown():
    one = finding(Unreadable("it gave no answer within 10 s"))
    assert one.severity == "UNKNOWN"
    assert "no answer within 10 s" in one.message


def test_without_any_torch_the_interpreter_is_named():
    assert GPUTUNE in finding(None, folder=None).message


def test_no_answer_is_unknown():
    [one] = found(interpreter, torch=Unreadable("no answer"))
    assert one.severity == "UNKNOWN"
    assert "no answer" in one.message


@pytest.mark.parametrize("name", ["torch.py", "torch/__init__.py"])
def test_a_file_here_that_stands_before_torch(name):
    [one] = found(interpreter, files={name: ""}, torch={"executable": GPUTUNE}, own_python=GPUTUNE)
    assert (one.severity, one.subject) == ("WARNING", name)
