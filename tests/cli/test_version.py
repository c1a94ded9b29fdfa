"""`gputune --version`, and with `-v` what a question about gputune begins with."""

import re

import pytest
from forked import gputune
from recorded import RecordedHost

from gputune import __version__
from gputune.cli import _version
from gputune.host import NvmlAbsent, Unreadable


def of(**overrides):
    return list(_version.lines(RecordedHost(**overrides)))


class Nvml:
    """A driver that answers these calls, and no other."""

    def __init__(self, **answers):
        self.answers = answers

    def count(self):
        return 1

    def system(self, name):
        if name in self.answers:
            return self.answers[name]
        raise Unreadable("NVML: Unknown Error")


def test_the_version_alone():
    assert gputune("--version").stdout == f"{__version__}\n"


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--version", "-v"), ("-v", "--version"), ("--verbose", "--version")])
def test_with_v_also_what_is_below_it(words):
    done = gputune(*words)
    assert (done.returncode, done.stderr) == (0, "")
    heads = [re.split(r"[ :]", line)[0] for line in done.stdout.splitlines()]
    assert heads[:5] == ["gputune", "Python", "torch", "driver", "NVML"]
    assert done.stdout.startswith(f"gputune {__version__} (/")


def test_a_driver_and_its_cuda():
    lines = of(nvml=Nvml(DriverVersion="580.159.04", CudaDriverVersion_v2=13000, NVMLVersion="13.580.159.04"))
    assert lines[3:] == ["driver 580.159.04, CUDA up to 13.0", "NVML 13.580.159.04"]


def test_without_a_driver_it_says_so():
    absent = NvmlAbsent("NVML: NVML Shared Library Not Found")
    lines = of(nvml=absent, files={"/proc/driver/nvidia/version": None})
    assert lines[3:] == ["driver: none found", "NVML: NVML Shared Library Not Found"]


def test_a_kernel_module_without_nvml():
    assert of(nvml=NvmlAbsent("NVML: no answer within 5 s"))[3:] == [
        "driver 580.159.04 (kernel module), CUDA not read",
        "NVML: no answer within 5 s",
    ]


def test_what_a_broken_driver_does_not_say():
    assert of(nvml=Nvml(DriverVersion="580.159.04"))[3:] == [
        "driver 580.159.04, CUDA not read",
        "NVML without a version",
        "driver.cuda: not read: NVML: Unknown Error",
        "NVML's version: not read: NVML: Unknown Error",
    ]


@pytest.mark.slow
def test_a_torch_without_files_is_named(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    assert of()[2] == f"torch: version not found in {tmp_path / 'torch.py'}"


def test_no_torch_is_said(monkeypatch):
    monkeypatch.setattr(_version, "find_spec", lambda name: None)
    assert of()[2] == "torch: none found by this Python"
