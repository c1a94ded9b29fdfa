import re

import pytest
from recorded import RecordedHost, found

from gputune.checks import compile_needs

CUDA_TORCH = {"cuda": "13.0", "devices": []}
NO_NAMES = {"CC": None, "CXX": None}


def findings(machine="nvidia-h200-x1", torch=None, environ=None, closed=(), **needs):
    recorded, environ = RecordedHost(machine).torch["compile"], {**NO_NAMES, **(environ or {})}
    torch = {**(torch or {}), "compile": {**recorded, **needs}}
    return found(compile_needs, machine, torch=torch, environ=environ, closed=closed)


@pytest.mark.parametrize(
    ("needs", "subject", "told", "typed"),
    [
        ({"compiler": None}, "C compiler", "no C compiler", "apt-get install -y --no-install-recommends gcc"),
        (
            {"triton": None},
            "triton",
            "no Triton",
            "/opt/torch/.venv/bin/python3 -m pip install torch==2.11.0+cu130 --index-url ",
        ),
    ],
)
def test_a_gpu_needs_what_triton_needs_and_the_cpu_does_not(needs, subject, told, typed):
    [one] = findings(**needs)
    assert (one.severity, one.subject) == ("WARNING", subject)
    assert told in one.message
    assert typed in one.remedy
    assert [one.severity for one in findings("cpu-only", **needs)] == ["OK"]


@pytest.mark.parametrize("machine", ["nvidia-h200-x1", "cpu-only"])
def test_both_need_python_s_headers(machine):
    [one] = findings(machine, headers=False)
    assert (one.severity, one.subject) == ("WARNING", "Python.h")
    assert "/usr/include/python3" in one.message
    assert re.search(r"apt-get install -y --no-install-recommends python3\.\d+-dev  # as root; for Debian", one.remedy)


@pytest.mark.parametrize(
    ("machine", "variable", "needs"),
    [("nvidia-h200-x1", "CC", {"compiler": None}), ("cpu-only", "CXX", {"compiler_cxx": None})],
)
def test_a_compiler_that_is_named_and_not_there(machine, variable, needs):
    [one] = findings(machine, environ={variable: "icx"}, **needs)
    assert (one.severity, one.subject) == ("WARNING", variable)
    assert f"{variable}=icx, which does not exist" in one.message
    assert one.remedy == f"unset {variable}  # or install it"


@pytest.mark.parametrize("name", [{"CXX": "icx"}, {"CC": ""}])
def test_another_variable_and_an_empty_one_name_no_compiler(name):
    assert [one.subject for one in findings(environ=name, compiler=None)] == ["C compiler"]


@pytest.mark.parametrize(
    ("version", "severity"),
    [("1.13.1", "NOT_APPLICABLE"), ("2.0.0", "WARNING"), ("2.11.0", "WARNING"), ("custom", "WARNING")],
)
def test_torch_compile_came_with_2_0(version, severity):
    [one] = findings(torch={"torch": version}, triton=None)
    assert one.severity == severity
    assert severity == "WARNING" or f"torch {version} has no torch.compile" in one.message


def test_triton_builds_with_a_c_compiler_alone():
    assert [one.severity for one in findings(compiler_cxx=None)] == ["OK"]


@pytest.mark.parametrize("torch", [{}, CUDA_TORCH])
def test_the_cpu_needs_a_cxx_compiler_whatever_the_torch(torch):
    [one] = findings("cpu-only", torch, compiler_cxx=None)
    assert (one.severity, one.subject) == ("WARNING", "C++ compiler")
    assert "g++" in one.remedy


def test_a_torch_without_cuda_computes_on_the_cpu_beside_a_gpu():
    assert [one.subject for one in findings(torch={"cuda": None}, compiler_cxx=None, triton=None)] == ["C++ compiler"]


@pytest.mark.parametrize("machine", ["nvidia-h200-x1", "cpu-only"])
@pytest.mark.parametrize(
    ("cache", "told"), [("/home/me/cache", "/home/me/cache"), (None, "cannot choose a folder for its cache")]
)
def test_a_cache_that_cannot_be_kept(machine, cache, told):
    [one] = findings(machine, cache=cache, closed=["/"])
    assert (one.severity, one.subject) == ("WARNING", "TORCHINDUCTOR_CACHE_DIR")
    assert told in one.message
    assert one.remedy == "mount a folder that can be written to, and name it in TORCHINDUCTOR_CACHE_DIR"
    [one] = findings(machine, cache=cache, closed=["/home/me"])
    assert cache is not None or one.remedy.startswith("export TORCHINDUCTOR_CACHE_DIR=/tmp/torchinductor  # ")


def test_all_that_is_missing_is_named():
    missing = findings(compiler=None, headers=False, triton=None, closed=["/"])
    assert [one.subject for one in missing] == ["C compiler", "Python.h", "triton", "TORCHINDUCTOR_CACHE_DIR"]
