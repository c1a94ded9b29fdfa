"""torch and its libraries, as the interpreter that was asked has them."""

import importlib
import sys

import pytest
from recorded import facts_of

from gputune.facts import libraries, precision
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


def test_each_thing_that_torch_could_not_say_is_a_gap():
    found = facts_of(torch={"cublas": None, "gaps": {"cublas": "LookupError: libcublas is not loaded"}})
    assert found.libraries.cublas is None
    assert "libraries.cublas" in [gap.fact for gap in found.gaps]


def test_a_torch_that_fails_to_import_is_a_gap_with_its_reason(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.13: cannot open shared object file')")
    gaps = Gaps()
    host = Host(environ={**NO_OVERRIDES, "PYTHONPATH": str(tmp_path)})
    found = libraries.read(host, libraries.ask_torch(host, gaps))
    assert found.python
    assert found.torch is None
    assert [gap.fact for gap in gaps.found] == ["libraries.torch"]
    assert "libcudart.so.13" in gaps.found[0].reason


def test_what_torch_compile_needs_on_a_recorded_machine():
    needs = facts_of().libraries.compile
    assert (needs.compiler, needs.headers, needs.triton, needs.cache_writable) == (
        "/opt/gcc/bin/gcc",
        True,
        "3.6.0",
        True,
    )


@pytest.fixture
def needs(tmp_path):
    """What a fake torch's Python answers that torch.compile would find."""
    (tmp_path / "torch.py").write_text("__version__ = '2.11.0'\nclass version: cuda = None\n")

    def read(**environ):
        host = Host(environ={**NO_OVERRIDES, "PYTHONPATH": str(tmp_path), **environ})
        return libraries.read(host, libraries.ask_torch(host, Gaps())).compile

    return read


def test_a_compiler_is_the_variable_s_or_none(needs, tmp_path):
    (tmp_path / "mycc").write_text("#!/bin/sh\n")
    (tmp_path / "mycc").chmod(0o755)
    assert needs(CC=str(tmp_path / "mycc")).compiler == str(tmp_path / "mycc")
    assert needs(CC="/no/such/compiler", PATH=str(tmp_path)).compiler is None
    assert needs(PATH=str(tmp_path)).compiler_cxx is None


def test_the_cache_is_named_after_the_variable_or_the_user(needs, tmp_path):
    assert needs(TORCHINDUCTOR_CACHE_DIR=f"{tmp_path}/a/b").cache == f"{tmp_path}/a/b"
    assert needs(TMPDIR=str(tmp_path), USER="me").cache == f"{tmp_path}/torchinductor_me"


def test_a_cache_below_a_file_is_not_writable(needs, tmp_path):
    (tmp_path / "file").write_text("")
    assert not needs(TORCHINDUCTOR_CACHE_DIR=f"{tmp_path}/file/x").cache_writable
    assert needs(TORCHINDUCTOR_CACHE_DIR=f"{tmp_path}/not/yet").cache_writable


def test_copies_in_the_search_path():
    files = {"/old/libcudnn.so.8": "", "/old/libcublas.so.12.1.0": "", "/old/libnccl.so.2": ""}
    found = facts_of(files=files, environ={"LD_LIBRARY_PATH": ":/old/:/none"}).libraries
    assert found.searched == ("/old/libcudnn.so.8",)


def test_what_is_loaded_is_no_other_copy():
    files = {"/cuda/libcudnn.so.9": "", "/cuda/libcublas.so.13": ""}
    found = facts_of(files=files, environ={"LD_LIBRARY_PATH": "/cuda"}, torch={"loaded": ["/cuda/libcudnn.so.9"]})
    assert found.libraries.searched == ("/cuda/libcublas.so.13",)


def test_the_torch_of_the_python_on_the_path_is_found_without_starting_it():
    files = {"/venv/bin/python": "", "/venv/lib/python3.12/site-packages/torch/version.py": ""}
    found = facts_of(files=files, environ={"PATH": "/nowhere:/venv/bin"}).libraries
    assert (found.path_python, found.path_torch_folder) == (
        "/venv/bin/python",
        "/venv/lib/python3.12/site-packages/torch",
    )


def test_debian_s_python_keeps_torch_below_local():
    files = {"/usr/bin/python3": "", "/usr/local/lib/python3.11/dist-packages/torch/version.py": ""}
    found = facts_of(files=files, environ={"PATH": "/usr/bin"}).libraries
    assert found.path_torch_folder == "/usr/local/lib/python3.11/dist-packages/torch"


def test_a_python_without_torch_has_none():
    found = facts_of(files={"/usr/bin/python3": ""}, environ={"PATH": "/usr/bin"}).libraries
    assert (found.path_python, found.path_torch_folder) == ("/usr/bin/python3", None)


def test_this_torch_answers_and_its_flags_are_the_defaults():
    gaps = Gaps()
    answers = libraries.ask_torch(Host(environ=NO_OVERRIDES), gaps)
    if "torch" not in answers:
        pytest.skip(f"no torch here: {gaps.found}")
    assert (answers["torch"], answers["cuda"]) == libraries.installed_torch()
    assert precision.read(Host(environ={}), answers).flags == precision.defaults_of(answers["torch"])


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
    assert libraries.installed_torch() == version


def test_no_torch_beside_gputune_has_no_version(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "path", [])
    importlib.invalidate_caches()
    assert libraries.installed_torch() == (None, None)
