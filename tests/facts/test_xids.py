"""The Xid errors in the kernel's log."""

import pytest
from recorded import facts_of

from gputune.facts.xids import Xid

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
    [(3600, "7200.00 1", 1.0), (7200, "7200", 0.0), *((3600, text, None) for text in (None, "x", "inf", "nan"))],
)
def test_how_long_ago_the_last_one_was(since_boot_seconds, uptime, hours):
    log = FAULT + f"3,905,{since_boot_seconds * 10**6},-;NVRM: Xid (PCI:0000:5e:00): 31, pid=4711\n"
    assert [(xid.count, xid.hours_ago) for xid in xids(log, uptime)] == [(2, hours)]


def test_a_log_without_times_has_no_age():
    assert xids("NVRM: Xid (PCI:0000:5e:00): 31, pid=4711\n")[0].hours_ago is None


@pytest.mark.parametrize("form", ["0000:01:00", "PCI:0000:01:00", "PCI:0000:01:00.0", "PCI:0000:01:00 GPU-I:05"])
def test_an_address_is_the_same_in_all_forms_of_the_line(form):
    assert xids(f"NVRM: Xid ({form}): 79, GPU has fallen off the bus.\n")[0].address == "0000:01:00"


@pytest.mark.parametrize(
    "line", ["NVRM: Xid (43, pid: 5678): GPU stopped", "NVRM: Xid", "NVRM: Xid (PCI:0000:01:00): x"]
)
def test_other_lines_with_the_word_are_none(line):
    assert xids(line) == ()


def action(number, words, address="0000:5e:00"):
    changed = f"GPU recovery action changed from 0x4 (Drain and Reset) to {number} ({words})"
    return f"NVRM: Xid (PCI:{address}): 154, {changed}\n"


@pytest.mark.parametrize(
    ("number", "words", "recovery"),
    [
        ("0x0", "None", "none"),
        ("0x1", "GPU Reset Required", "gpu reset"),
        ("0x2", "OS Reboot", "node reboot"),
        ("0x2", "Node Reboot Required", "node reboot"),
        ("0x4", "Drain and Reset", "drain and reset"),
        ("0xff", "Something New", "Something New"),
    ],
)
def test_the_recovery_action_is_nvml_s_whatever_the_driver_calls_it(number, words, recovery):
    [xid] = xids(action(number, words))
    assert (xid.recovery, xid.mended) == (recovery, recovery == "none")


def test_an_action_that_was_asked_for_later_is_of_all_errors_before_it():
    found = xids(FAULT + action("0x1", "GPU Reset Required") + FELL)
    assert {xid.number: xid.recovery for xid in found} == {31: "gpu reset", 154: "gpu reset", 79: None}


def test_loading_the_driver_anew_mends_what_was_before():
    found = xids(FAULT + "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05\n" + FELL)
    assert {xid.number: xid.mended for xid in found} == {31: True, 79: False}


@pytest.mark.parametrize(("lines", "nonfatal"), [(["Nonfatal"], True), (["Nonfatal", "Fatal"], False)])
def test_nvlink_errors_are_nonfatal_if_all_are(lines, nonfatal):
    log = "".join(f"NVRM: Xid (PCI:0000:5e:00): 145, RLW_RXPIPE {called} XC0 i0 Link 13\n" for called in lines)
    assert xids(log)[0].nonfatal == nonfatal
