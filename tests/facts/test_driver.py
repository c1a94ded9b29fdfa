"""The driver's versions, from NVML and from the kernel module."""

import pytest
from recorded import facts_of

from gputune.host import Unreadable

PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12\n"
)
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder)\n"


def test_a_recorded_machine():
    found = facts_of().driver
    assert found.nvml
    assert (found.version, found.kernel_version, found.cuda) == ("580.159.04", "580.159.04", "13.0")


@pytest.mark.parametrize(("text", "version"), [(PROPRIETARY, "535.104.05"), (OPEN, "580.159.04"), ("garbage", None)])
def test_the_kernel_module_s_version(text, version):
    assert facts_of(files={"/proc/driver/nvidia/version": text}).driver.kernel_version == version


def test_without_a_kernel_module_there_is_no_version_and_no_gap():
    found = facts_of(files={"/proc/driver/nvidia/version": None})
    assert found.driver.kernel_version is None
    assert not [gap for gap in found.gaps if gap.fact.startswith("driver")]


def test_without_nvml_the_kernel_still_tells():
    found = facts_of(nvml=Unreadable("NVML: Shared Library Not Found")).driver
    assert (found.nvml, found.version, found.cuda, found.kernel_version) == (False, None, None, "580.159.04")


@pytest.mark.parametrize(("number", "cuda"), [(12040, "12.4"), (11080, "11.8"), (13000, "13.0")])
def test_cuda_s_number_as_a_version(number, cuda):
    assert facts_of(nvml={"DriverVersion": "1.0", "CudaDriverVersion_v2": number, "devices": []}).driver.cuda == cuda


def test_a_log_that_cannot_be_read_is_a_gap():
    found = facts_of(files={"/dev/kmsg": None})
    assert (found.driver.xids, found.driver.kernel_errors) == (None, None)
    assert "driver.xids" in [gap.fact for gap in found.gaps]


def test_without_a_driver_there_is_nothing_to_look_for():
    found = facts_of("cpu-only")
    assert found.driver.xids is None
    assert not found.gaps
