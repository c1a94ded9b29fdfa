from dataclasses import replace

import pytest
from recorded import facts_of, found

from gputune.checks import xid_errors
from gputune.facts import Gap

DRIVER = facts_of().driver.kernel_version


HARDWARE = [46, 48, 61, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, *range(144, 151)]


def log(*lines):
    return {
        "/dev/kmsg": "".join(f"3,9,88,-;NVRM: Xid (PCI:{address}): {xid}, pid=1, name=x\n" for address, xid in lines)
    }


def findings(*lines, machine="nvidia-h200-x1", **files):
    return found(xid_errors, machine, files={**log(*lines), **files})


@pytest.mark.parametrize("xid", HARDWARE)
def test_an_error_of_the_hardware(xid):
    [one] = findings(("0000:3b:00", xid))
    assert (one.severity, one.subject) == ("ERROR", "0000:3b:00")
    assert one.message == f"Xid {xid}, 1 time since boot, of the GPU at 0000:3b:00"
    assert one.remedy.startswith("on the host: sudo dmesg | grep Xid; drain it, reset the GPU or reboot")


@pytest.mark.parametrize("xid", [13, 31, 43, 45])
def test_an_error_that_a_program_may_make(xid):
    [one] = findings(("0000:3b:00", xid))
    assert (one.severity, one.subject) == ("WARNING", "0000:3b:00")
    assert f"Xid {xid}," in one.message
    assert "program" in one.message
    assert one.remedy == "on the host: sudo dmesg | grep Xid names the program"


def test_a_contained_memory_error_cost_one_program():
    [one] = findings(("0000:3b:00", 94))
    assert one.severity == "WARNING"
    assert "a memory error that affected only the program that hit it" in one.message
    assert "reset the GPU" in one.remedy


@pytest.mark.parametrize("xid", [63, 92, 121])
def test_a_note_that_asks_for_nothing(xid):
    [one] = findings(("0000:3b:00", xid))
    assert (one.severity, one.subject) == ("OK", "0000:3b:00")
    assert one.message.startswith(f"Xid {xid}, 1 time since boot")


@pytest.mark.parametrize("xid", [8, 32, 68, 69, 93, 109, 142, 151, 154])
def test_any_other_is_a_warning_to_look_up(xid):
    [one] = findings(("0000:3b:00", xid))
    assert (one.severity, one.subject) == ("WARNING", "0000:3b:00")
    assert one.message == f"Xid {xid}, 1 time since boot, of the GPU at 0000:3b:00"
    assert one.remedy.endswith(f"NVIDIA's Xid catalogue says what {xid} requires")


def test_each_kind_on_each_gpu_is_counted():
    found_ = findings(("0000:3b:00", 31), ("0000:5e:00", 31), ("0000:3b:00", 79), ("0000:3b:00", 31))
    assert [(one.severity, one.subject) for one in found_] == [
        ("WARNING", "0000:3b:00"),
        ("WARNING", "0000:5e:00"),
        ("ERROR", "0000:3b:00"),
    ]
    assert "Xid 31, 2 times" in found_[0].message


def test_a_log_without_one():
    [one] = findings()
    assert (one.severity, one.subject) == ("OK", None)


def test_a_log_that_may_not_be_read_is_unknown():
    facts = facts_of()
    gap = Gap(fact="driver.xids", reason="/dev/kmsg: Operation not permitted")
    [one] = xid_errors.check(replace(facts, driver=replace(facts.driver, xids=None), gaps=(gap,)), ())
    assert one.severity == "UNKNOWN"
    assert "Operation not permitted" in one.message
    assert "sudo dmesg | grep Xid" in one.message


def test_a_container_has_no_log():
    [one] = found(xid_errors, files={"/dev/kmsg": None})
    assert one.severity == "NOT_APPLICABLE"
    assert "on the host: sudo dmesg | grep Xid" in one.message


def test_no_log_outside_a_container_is_unknown():
    [one] = found(xid_errors, files={"/dev/kmsg": None, "/.dockerenv": None})
    assert one.severity == "UNKNOWN"
    assert "No such file" in one.message


def test_a_gpu_without_a_driver_s_module_is_unknown():
    [one] = found(xid_errors, files={"/proc/driver/nvidia/version": None})
    assert one.severity == "UNKNOWN"


def test_the_error_that_took_the_last_gpu_away_is_told():
    module = {"/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  now\n"}
    told = findings(("0000:3b:00", 79), machine="cpu-only", **module)
    assert [(one.severity, one.subject) for one in told if one.severity == "ERROR"] == [("ERROR", "0000:3b:00")]


@pytest.mark.parametrize(("hours", "severity"), [(24, "ERROR"), (25, "WARNING")])
def test_the_log_keeps_an_error_until_the_next_boot_though_the_gpu_may_be_reset(hours, severity):
    log = "3,9,0,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python\n"
    [one] = found(xid_errors, files={"/dev/kmsg": log, "/proc/uptime": f"{hours * 3600} 1"})
    assert one.severity == severity
    assert f"the last {hours} h ago" in one.message


def test_in_wsl_the_driver_logs_elsewhere():
    [one] = found(xid_errors, files={"/dev/dxg": ""})
    assert one.severity == "NOT_APPLICABLE"
