"""The driver's versions, from NVML and from the kernel module."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import facts_of

from gputune.facts.driver import Xid
from gputune.host import Unreadable

PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12\n"
)
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder)\n"


def kernel(text):
    return facts_of(files={"/proc/driver/nvidia/version": text}).driver.kernel_version


def test_a_recorded_machine():
    found = facts_of().driver
    assert found.nvml
    assert (found.version, found.kernel_version, found.cuda) == ("580.159.04", "580.159.04", "13.0")


@pytest.mark.parametrize(("text", "version"), [(PROPRIETARY, "535.104.05"), (OPEN, "580.159.04"), ("garbage", None)])
def test_the_kernel_module_s_version(text, version):
    assert kernel(text) == version


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


FELL = "3,901,88,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
FAULT = "3,902,89,-;NVRM: Xid (PCI:0000:5e:00): 31, pid=4711, name=python, Ch 00000008, intr 10000000\n"
OTHER = "6,903,90,-;e1000e 0000:00:1f.6 eno1: NIC Link is Up\n"


def xids(log, uptime="7200.00 9.99"):
    return facts_of(files={"/dev/kmsg": log, "/proc/uptime": uptime}).driver.xids


def test_a_recorded_log_without_an_xid():
    assert facts_of().driver.xids == ()


def test_each_kind_of_each_gpu_is_counted():
    assert xids(FAULT + OTHER + FELL + FAULT) == (
        Xid(number=31, address="0000:5e:00", count=2, hours_ago=2.0),
        Xid(number=79, address="0000:3b:00", count=1, hours_ago=2.0),
    )


@pytest.mark.parametrize(
    ("since_boot_seconds", "uptime", "hours"),
    [(3600, "7200.00 1", 1.0), (7200, "7200", 0.0), (3600, None, None), (3600, "x", None)],
)
def test_how_long_ago_the_last_one_was(since_boot_seconds, uptime, hours):
    log = FAULT + f"3,905,{since_boot_seconds * 10**6},-;NVRM: Xid (PCI:0000:5e:00): 31, pid=4711\n"
    assert [(xid.count, xid.hours_ago) for xid in xids(log, uptime)] == [(2, hours)]


def test_a_log_without_times_has_no_age():
    assert xids("NVRM: Xid (PCI:0000:5e:00): 31, pid=4711\n")[0].hours_ago is None


def test_a_slice_s_error_is_its_gpu_s():
    assert xids("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 43, pid=1, name=python\n")[0].address == "0000:01:00"


@given(st.text(alphabet="NVRM: Xid(PCI)0123456789,-\n", max_size=80) | st.text())
def test_any_log_has_xids_or_none(log):
    assert all(xid.count > 0 for xid in xids(log))


def test_a_log_that_cannot_be_read_is_a_gap():
    found = facts_of(files={"/dev/kmsg": None})
    assert found.driver.xids is None
    assert "driver.xids" in [gap.fact for gap in found.gaps]


def test_without_a_driver_there_is_nothing_to_look_for():
    found = facts_of("cpu-only")
    assert found.driver.xids is None
    assert not found.gaps
