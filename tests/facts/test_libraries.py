"""torch and its libraries, as the interpreter that was asked has them."""

import importlib
import sys

import pytest
from recorded import facts_of

from gputune.facts import libraries, precision, unimported_torch
from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable

NO_OVERRIDES = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


@pytest.mark.parametrize(
    ("number", "version"),
    [(91900, "9.19.0"), (92800, "9.28.0"), (90000, "9.0.0"), (90100, "9.1.0"), (8902, "8.9.2"), (None, None)],
)
def test_cudnn_s_number_as_a_version(number, version):
    assert libraries.cudnn_version(number) == version


def test_a_recorded_machine():
    found = facts_of("nvidia-h200-x8").libraries
    assert (found.torch, found.cuda, found.cudnn, found.nccl) == ("2.11.0+cu130", "13.0", "9.19.0", "2.28.9")
    assert found.device_count == 8
    assert "sm_90" in found.architectures


def test_a_build_without_cuda_counts_no_devices():
    found = facts_of("cpu-only").libraries
    assert (found.cuda, found.device_count, found.architectures) == (None, None, ())


def test_no_answer_is_a_gap():
    found = facts_of(torch=Unreadable("python gave no answer within 120 s"))
    assert (found.libraries.python, found.libraries.torch, found.libraries.compile) == (None, None, None)
    assert ("libraries.torch", "python gave no answer within 120 s") in [(gap.fact, gap.reason) for gap in found.gaps]


@pytest.mark.slow
def test_a_torch_that_fails_to_import_is_a_gap_with_its_reason(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.13: cannot open shared object file')")
    gaps = Gaps()
    host = Host(environ={**NO_OVERRIDES, "PYTHONPATH": str(tmp_path)})
    found = libraries.read(host, unimported_torch.ask_torch(host, gaps), gaps)
    assert found.python
    assert found.torch is None
    assert [gap.fact for gap in gaps.found] == ["libraries.torch"]
    assert "libcudart.so.13" in gaps.found[0].reason


def test_what_torch_compile_needs_on_a_recorded_machine():
    needs = facts_of().libraries.compile
    assert (needs.compiler, needs.headers, needs.triton) == ("/opt/gcc/bin/gcc", True, "3.6.0")
    assert needs.cache_writable


@pytest.fixture
def needs(tmp_path):
    (tmp_path / "torch.py").write_text("__version__ = '2.11.0'\nclass version: cuda = None\n")

    def read(**environ):
        host = Host(environ={**NO_OVERRIDES, "PYTHONPATH": str(tmp_path), **environ})
        return libraries.read(host, unimported_torch.ask_torch(host, Gaps()), Gaps()).compile

    return read


@pytest.mark.slow
def test_a_compiler_is_the_variable_s_or_none(needs, tmp_path):
    (tmp_path / "mycc").write_text("#!/bin/sh\n")
    (tmp_path / "mycc").chmod(0o755)
    assert needs(CC=str(tmp_path / "mycc")).compiler == str(tmp_path / "mycc")
    assert needs(CC="/no/such/compiler", PATH=str(tmp_path)).compiler is None
    assert needs(PATH=str(tmp_path)).compiler_cxx is None


@pytest.mark.slow
def test_the_cache_is_named_after_the_variable_or_the_user(needs, tmp_path):
    assert needs(TORCHINDUCTOR_CACHE_DIR=f"{tmp_path}/a/b").cache == f"{tmp_path}/a/b"
    assert needs(TMPDIR=str(tmp_path), USER="me").cache == f"{tmp_path}/torchinductor_me"


@pytest.mark.slow
def test_a_cache_below_a_file_is_not_writable(needs, tmp_path):
    (tmp_path / "file").write_text("")
    assert not needs(TORCHINDUCTOR_CACHE_DIR=f"{tmp_path}/file/x").cache_writable
    assert needs(TORCHINDUCTOR_CACHE_DIR=f"{tmp_path}/not/yet").cache_writable


def where(tmp_path, script):
    shim = tmp_path / "bin" / "python"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\n{script}\n")
    shim.chmod(0o755)
    gaps = Gaps()
    found = libraries.read(Host(environ={"PATH": str(shim.parent)}), {}, gaps)
    assert found.path_python == str(shim)
    return found.path_torch_folder, [gap.fact for gap in gaps.found]


def test_a_python_on_the_path_is_asked_where_its_torch_is_even_a_shim(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError('imported')")
    assert where(tmp_path, f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"') == (str(tmp_path / "torch"), [])


def test_a_python_without_torch_has_none(tmp_path):
    assert where(tmp_path, f'exec {sys.executable} -I -S "$@"') == (None, [])


def test_a_python_that_does_not_answer_is_a_gap(tmp_path):
    assert where(tmp_path, "exit 3") == (None, ["libraries.path_torch_folder"])


def test_no_python_on_the_path():
    found = libraries.read(Host(environ={"PATH": "/nowhere"}), {}, Gaps())
    assert (found.path_python, found.path_torch_folder) == (None, None)


@pytest.mark.slow
def test_a_newer_switch_set_alone_is_a_conflict_since_torch_2_9(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import torch\ntorch.backends.cuda.matmul.fp32_precision = 'tf32'\n")
    answers = unimported_torch.ask_torch(Host(environ={**NO_OVERRIDES, "PYTHONPATH": str(tmp_path)}), Gaps())
    since = tuple(int(part) for part in answers["torch"].split(".")[:2]) >= (2, 9)
    assert ("mix of the legacy and new APIs" in (answers["api_conflict"] or "")) is since


@pytest.mark.slow
def test_this_torch_answers_and_its_flags_are_the_defaults():
    gaps = Gaps()
    answers = unimported_torch.ask_torch(Host(environ=NO_OVERRIDES), gaps)
    assert "torch" in answers, gaps.found
    assert (answers["torch"], answers["cuda"]) == unimported_torch.installed_torch()
    assert precision.read(Host(environ={}), answers).flags == precision.default_flags(answers["torch"])


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n", ("2.11.0+cu130", "13.0")),
        ("__version__ = '2.5.1'\ncuda = None\n", ("2.5.1", None)),
        ("", (None, None)),
        (None, (None, None)),
    ],
)
def test_the_installed_version_is_read_without_an_import(tmp_path, monkeypatch, text, version):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError('imported')")
    if text is not None:
        (tmp_path / "torch" / "version.py").write_text(text)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert unimported_torch.installed_torch() == version


def test_no_torch_beside_gputune_has_no_version(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "path", [])
    importlib.invalidate_caches()
    assert unimported_torch.installed_torch() == (None, None)


def test_every_libcuda_on_the_library_path_in_its_order():
    files = ["/a/libcuda.so.1", "/a/libcudart.so.13", "/b/libcuda.so", "/b/libcuda.so.580.95.05", "/c/libcuda.so.1"]
    found = facts_of(environ={"LD_LIBRARY_PATH": "/b/::/nowhere:/a"}, files=dict.fromkeys(files, "")).libraries
    assert found.cuda_drivers == ("/b/libcuda.so", "/b/libcuda.so.580.95.05", "/a/libcuda.so.1")
