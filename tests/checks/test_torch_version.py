import pytest
from recorded import facts_of

from gputune.checks import torch_version
from gputune.host import Unreadable


def finding(torch):
    [found] = torch_version.check(facts_of(torch=torch), ())
    return found


@pytest.mark.parametrize("version", ["2.3.1+cu121", "2.0.0", "1.13.1"])
def test_too_old(version):
    found = finding({"torch": version})
    assert found.severity == "WARNING"
    assert version in found.message
    upgrade = "/opt/torch/.venv/bin/python3 -m pip install --upgrade torch"
    assert found.remedy.startswith(f"{upgrade} --index-url https://download.pytorch.org/whl/cu130  # ")


@pytest.mark.parametrize("version", ["2.4.0", "2.15.0+cu130", "2.13.0a0+git1", "3.0.0"])
def test_supported(version):
    assert finding({"torch": version}).severity == "OK"


def test_not_installed():
    error = {"type": "ModuleNotFoundError", "name": "torch", "message": "No module named 'torch'"}
    found = finding({"torch": None, "gaps": {"torch": error}})
    assert found.severity == "WARNING"
    assert found.message == "torch is not installed in /opt/torch/.venv/bin/python3"
    assert found.remedy == (
        "/opt/torch/.venv/bin/python3 -m pip install torch --index-url https://download.pytorch.org/whl/cu130  "
        "# or name the Python that has it: gputune check --python PATH"
    )


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        (
            {"torch": None, "gaps": {"torch": "ImportError: cannot open shared object file"}},
            "import torch: ImportError: cannot open shared object file",
        ),
        (Unreadable("python ended (exit code -11)", "killed"), "python ended (exit code -11)"),
    ],
)
def test_one_that_is_installed_and_cannot_be_imported_is_an_error(torch, reason):
    found = finding(torch)
    assert (found.severity, found.message) == ("ERROR", f"torch cannot be imported: {reason}")
    assert " -m pip install --force-reinstall torch" in found.remedy
    assert "-c 'import torch' shows the whole error" in found.remedy


def test_one_that_does_not_say_why_it_does_not_answer_is_unknown():
    assert finding({"torch": None, "executable": None}).severity == "UNKNOWN"


@pytest.mark.parametrize(
    "reason", ["no answer within 120 s", "ModuleNotFoundError: No module named 'typing_extensions'"]
)
def test_installed_or_not_is_unknown_when_something_else_failed(reason):
    found = finding(Unreadable(reason))
    assert found.severity == "UNKNOWN"
    assert reason in found.message


def test_a_version_that_is_no_number():
    assert finding({"torch": "main"}).severity == "UNKNOWN"


def test_a_torch_that_finds_no_folder_for_temporary_files_is_not_installed_anew():
    broken = Unreadable("import torch: FileNotFoundError: No usable temporary directory found", "import_failed")
    [found] = torch_version.check(facts_of(torch=broken, closed=["/tmp"]), ())
    assert found.severity == "ERROR"
    assert found.remedy.startswith("mkdir -p /root/.cache/tmp && export TMPDIR=/root/.cache/tmp")
