from dataclasses import replace

import pytest
from recorded import RecordedHost, facts_of, found

from gputune.checks import xid_errors
from gputune.facts import Gap

DRIVER = facts_of().driver.kernel_version
LOOK = "sudo dmesg --ctime | grep -E 'NVRM: Xid'  # on the host, as root"
ONLY, EIGHT = "nvidia-h200-x1", "nvidia-h200-x8"
OURS = "0000:00:06"
"""The address of the only GPU of one machine, and of the first of the other."""
RESET = "--gpu-reset"


def log(*lines):
    return {
        "/dev/kmsg": "".join(f"3,9,88,-;NVRM: Xid (PCI:{address}): {xid}, pid=1, name=x\n" for address, xid in lines)
    }


def findings(*lines, machine=ONLY, **files):
    return found(xid_errors, machine, files={**log(*lines), **files})


def recovery(action, before="0x0 (None)"):
    return f"3,9,88,-;NVRM: Xid (PCI:{OURS}): 154, GPU recovery action changed from {before} to {action}\n"


def judged(text, machine=ONLY, **overrides):
    return found(xid_errors, machine, files={"/dev/kmsg": text} | overrides.pop("files", {}), **overrides)


HARDWARE = [46, 48, 61, 62, 64, 74, 95, 109, 110, 119, 120, 136, 140, 143, *range(144, 151), 155, 156, 158, 171, 172]


@pytest.mark.parametrize("xid", HARDWARE)
def test_what_asks_for_a_reset_is_an_error_and_the_remedy_resets_that_gpu(xid):
    [one] = findings((OURS, xid))
    assert (one.severity, one.subject) == ("ERROR", OURS)
    assert one.message == f"Xid {xid}, 1 time since boot, of the GPU at {OURS}"
    assert f"sudo nvidia-smi -i 00000000:{OURS[5:]}.0 {RESET}" in one.remedy
    assert "replace the card if it comes back" in one.remedy


@pytest.mark.parametrize("xid", [79, 151])
def test_what_asks_for_a_restart_is_an_error(xid):
    [one] = findings((OURS, xid))
    assert (one.severity, one.subject) == ("ERROR", OURS)
    assert one.remedy.startswith("sudo systemctl reboot  # on the host, as root; ends its jobs")


def test_a_power_cable_is_plugged_in():
    [one] = findings((OURS, 54))
    assert one.severity == "ERROR"
    assert "power cables" in one.remedy


@pytest.mark.parametrize("xid", [79, 119])
def test_a_gpu_that_nvml_does_not_list_cannot_be_reset(xid):
    [one] = findings(("0000:3b:00", xid))
    assert (one.severity, one.subject) == ("ERROR", "0000:3b:00")
    assert one.remedy.startswith("sudo systemctl reboot")


@pytest.mark.parametrize(
    ("action", "does"),
    [
        ("0x1 (GPU Reset Required)", RESET),
        ("0x1 (PF FLR)", RESET),
        ("0x2 (Node Reboot Required)", "reboot"),
        ("0x2 (OS Reboot)", "reboot"),
        ("0x3 (Drain P2P)", RESET),
        ("0x4 (Drain and Reset)", RESET),
        ("0x6 (Bus Reset)", "reboot"),
        ("0x7 (System Reboot)", "reboot"),
        ("0x63 (Something New)", RESET),
    ],
)
def test_what_the_driver_asks_for_is_an_error(action, does):
    [one] = judged(recovery(action), gpu={"FieldValues:[230]": {"unreadable": "NVML: Not Supported"}})
    assert (one.severity, one.subject) == ("ERROR", OURS)
    assert does in one.remedy


def test_an_imex_domain_in_need_leaves_the_gpu_itself_working():
    [one] = judged(recovery("0x5 (Recover IMEX Domain)"), gpu={"FieldValues:[230]": {"unreadable": "NVML: x"}})
    assert one.severity == "WARNING"
    assert "nvidia-imex" in one.remedy


def test_no_recovery_is_no_complaint():
    [one] = judged(recovery("0x0 (None)", before="0x1 (GPU Reset Required)"))
    assert (one.severity, one.subject) == ("OK", OURS)


@pytest.mark.parametrize("xid", [13, 31, 43, 45])
def test_an_error_that_a_program_may_make(xid):
    [one] = findings((OURS, xid))
    assert (one.severity, one.subject) == ("WARNING", OURS)
    assert f"Xid {xid}," in one.message
    assert "program" in one.message
    assert one.remedy == f"{LOOK}; it names the program"


def test_a_contained_memory_error_cost_one_program():
    [one] = findings((OURS, 94))
    assert one.severity == "WARNING"
    assert "a memory error that affected only the program that hit it" in one.message
    assert RESET in one.remedy


@pytest.mark.parametrize("xid", [63, 92, 106, 107, 121, 162])
def test_a_note_that_asks_for_nothing(xid):
    [one] = findings((OURS, xid))
    assert (one.severity, one.subject) == ("OK", OURS)
    assert one.message.startswith(f"Xid {xid}, 1 time since boot")


@pytest.mark.parametrize("xid", [8, 32, 68, 69, 93, 142, 154, 157, 163, 169, 999])
def test_any_other_is_a_warning_to_look_up(xid):
    [one] = findings((OURS, xid))
    assert (one.severity, one.subject) == ("WARNING", OURS)
    assert one.message == f"Xid {xid}, 1 time since boot, of the GPU at {OURS}"
    assert one.remedy.endswith(f"NVIDIA's Xid catalogue says what {xid} requires")


def test_a_virtual_gpu_needs_drivers_that_fit():
    [one] = findings((OURS, 78))
    assert one.severity == "WARNING"
    assert "update the drivers" in one.remedy


@pytest.mark.parametrize(("called", "severity"), [("Nonfatal", "WARNING"), ("Fatal", "ERROR")])
def test_an_nvlink_error_is_as_bad_as_the_driver_calls_it(called, severity):
    [one] = judged(f"3,9,88,-;NVRM: Xid (PCI:{OURS}): 145, RLW_RXPIPE {called} XC0 i0 Link 13 (0x0409a0c2)\n")
    assert one.severity == severity


def test_each_kind_on_each_gpu_is_counted():
    found_ = findings((OURS, 31), ("0000:5e:00", 31), (OURS, 79), (OURS, 31))
    assert [(one.severity, one.subject) for one in found_] == [
        ("WARNING", OURS),
        ("WARNING", "0000:5e:00"),
        ("ERROR", OURS),
    ]
    assert "Xid 31, 2 times" in found_[0].message


@pytest.mark.parametrize("form", [f"({OURS})", f"(PCI:{OURS})", f"(PCI:{OURS}.0)", f"(PCI:{OURS} GPU-I:05)"])
def test_the_forms_of_old_and_new_drivers(form):
    [one] = judged(f"3,9,88,-;NVRM: Xid {form}: 79, GPU has fallen off the bus.\n")
    assert (one.severity, one.subject) == ("ERROR", OURS)


@pytest.mark.parametrize("hours", [1, 25, 1000])
def test_an_error_stays_one_for_as_long_as_the_machine_runs(hours):
    log = f"3,9,0,-;NVRM: Xid (PCI:{OURS}): 79, pid=1, name=python\n"
    [one] = judged(log, files={"/proc/uptime": f"{hours * 3600} 1"})
    assert one.severity == "ERROR"
    assert f"the last {hours} h ago" in one.message


LOADED = "5,9,99,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.159.04\n"
FELL = f"3,9,88,-;NVRM: Xid (PCI:{OURS}): 79, GPU has fallen off the bus.\n"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (FELL + recovery("0x0 (None)", "0x2 (Node Reboot Required)"), "OK"),
        (FELL + LOADED, "OK"),
        (LOADED + FELL, "ERROR"),
        (recovery("0x0 (None)", "0x1 (GPU Reset Required)") + FELL, "ERROR"),
        (FELL + LOADED + FELL, "ERROR"),
        (FELL + recovery("0x0 (None)", "0x1 (x)").replace(OURS, "0000:5e:00"), "ERROR"),
    ],
)
def test_what_the_log_says_later_mends_an_error(text, severity):
    assert next(one.severity for one in judged(text) if "Xid 79" in one.message) == severity


def test_a_gpu_that_is_not_back_is_not_mended():
    [one] = judged(FELL.replace(OURS, "0000:3b:00") + LOADED)
    assert one.severity == "ERROR"


RESET_REQUIRED, REBOOT_REQUIRED = recovery("0x1 (GPU Reset Required)"), recovery("0x2 (Node Reboot Required)")
TIMEOUT = FELL.replace("79", "119")


@pytest.mark.parametrize(
    ("text", "now", "severity"),
    [
        (TIMEOUT + RESET_REQUIRED, "none", "WARNING"),
        (TIMEOUT + RESET_REQUIRED, "gpu reset", "ERROR"),
        (TIMEOUT + RESET_REQUIRED, None, "ERROR"),
        (TIMEOUT, "none", "ERROR"),  # it never asked for a reset, so that NVML's answer says nothing of one
        (RESET_REQUIRED + TIMEOUT, "none", "ERROR"),  # the same, after a reset
        (TIMEOUT + REBOOT_REQUIRED, "none", "ERROR"),  # the machine was not rebooted since, or the log would be empty
        (FELL + RESET_REQUIRED, "none", "ERROR"),
    ],
)
def test_a_reset_that_the_log_asked_for_and_nvml_does_not_any_more_was_made(text, now, severity):
    facts = facts_of(files={"/dev/kmsg": text})
    [gpu] = facts.gpus
    machine = replace(facts, gpus=(replace(gpu, health=replace(gpu.health, recovery_action=now)),))
    told = {one.message.split(",")[0]: one.severity for one in xid_errors.check(machine, ())}
    assert next(found for xid, found in told.items() if xid != "Xid 154") == severity


def eight(given, listed, **overrides):
    """A machine with eight GPUs of which this process may open the first `given` and NVML lists the first `listed`."""
    answers = RecordedHost(EIGHT).nvml_answers
    answers["devices"] = answers["devices"][:listed]
    torch = {"devices": RecordedHost(EIGHT).torch["devices"][:listed]}
    denied = [f"/dev/nvidia{number}" for number in range(given, 8)]
    text = FELL.replace(OURS, "0000:00:0d")
    return judged(text, EIGHT, nvml=answers, torch=torch, denied=denied, **overrides)


NO_CONTAINER = {"files": {"/.dockerenv": None}, "environ": {"NVIDIA_VISIBLE_DEVICES": None}}
SLURM = {"files": {"/.dockerenv": None}, "environ": {"NVIDIA_VISIBLE_DEVICES": None, "SLURM_JOB_ID": "1"}}


@pytest.mark.parametrize("overrides", [{}, NO_CONTAINER, SLURM, {"environ": {"KUBERNETES_SERVICE_HOST": "x"}}])
def test_a_job_that_was_given_one_gpu_is_not_blamed_for_a_neighbour_s_error(overrides):
    [one] = eight(1, 1, **overrides)
    assert (one.severity, one.subject) == ("NOT_APPLICABLE", "0000:00:0d")
    assert "which this container or job was not given" in one.message


@pytest.mark.parametrize("overrides", [{}, NO_CONTAINER])
def test_on_the_whole_host_a_gpu_that_is_gone_is_an_error(overrides):
    [one] = eight(8, 7, **overrides)
    assert (one.severity, one.subject) == ("ERROR", "0000:00:0d")


def test_a_job_whose_own_gpu_is_gone_has_an_error():
    [one] = eight(2, 1)
    assert one.severity == "ERROR"


def test_a_gpu_whose_device_file_is_gone_too_is_still_the_host_s():
    overrides = {**NO_CONTAINER, "files": {"/.dockerenv": None, "/dev/nvidia7": None}}
    [one] = eight(8, 7, **overrides)
    assert one.severity == "ERROR"


def test_a_log_without_one():
    [one] = findings()
    assert (one.severity, one.subject) == ("OK", None)


def test_a_log_that_may_not_be_read_is_unknown():
    facts = facts_of()
    gap = Gap(fact="driver.xids", reason="/dev/kmsg: Operation not permitted")
    [one] = xid_errors.check(replace(facts, driver=replace(facts.driver, xids=None), gaps=(gap,)), ())
    assert one.severity == "UNKNOWN"
    assert "Operation not permitted" in one.message
    assert LOOK in one.message


def test_a_container_has_no_log():
    [one] = found(xid_errors, files={"/dev/kmsg": None})
    assert one.severity == "NOT_APPLICABLE"
    assert LOOK in one.message


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


def test_in_wsl_the_driver_logs_elsewhere():
    [one] = found(xid_errors, files={"/dev/dxg": ""})
    assert one.severity == "NOT_APPLICABLE"
