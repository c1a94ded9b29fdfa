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
    assert found.libraries == libraries.Libraries()
    assert ("libraries.torch", "python gave no answer within 120 s") in [(gap.fact, gap.reason) for gap in found.gaps]


def test_each_thing_that_torch_could_not_say_is_a_gap():
    found = facts_of(torch={"cublas": None, "gaps": {"cublas": "LookupError: libcublas is not loaded"}})
    assert found.libraries.cublas is None
    assert "libraries.cublas" in [gap.fact for gap in found.gaps]


def test_a_torch_that_fails_to_import_is_a_gap_with_its_reason(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.13: cannot open shared object file')")
    gaps = Gaps()
    answers = libraries.ask_torch(Host(environ={**NO_OVERRIDES, "PYTHONPATH": str(tmp_path)}), gaps)
    assert libraries.read(answers).python
    assert libraries.read(answers).torch is None
    assert [gap.fact for gap in gaps.found] == ["libraries.torch"]
    assert "libcudart.so.13" in gaps.found[0].reason


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
