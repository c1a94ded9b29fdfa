import pytest
from recorded import RecordedHost, found

from gputune.checks import kernel_log

ONLY, EIGHT = "nvidia-h200-x1", "nvidia-h200-x8"
GPU, SWITCH = "0000:00:06.0", "0000:c1:00.0"
SXID = f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): "
AER = "PCIe Bus Error: severity="


def findings(*lines, machine=ONLY, **overrides):
    log = "".join(f"3,9,88,-;{line}\n" for line in lines)
    return found(kernel_log, machine, files={"/dev/kmsg": log} | overrides.pop("files", {}), **overrides)


ERRORS = {
    f"{SXID}20034, Fatal, Link 30 LTSSM Fault Up": (SWITCH, "sudo nvidia-smi --gpu-reset"),
    f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x26:0xffff:1290)": (GPU, "reboot"),
    "NVRM: RmInitAdapter failed! (0x26:0xffff:1290)": (None, "reboot"),
    f"NVRM: GPU {GPU}: GPU has fallen off the bus.": (GPU, "reboot"),
    f"nvidia {GPU}: {AER}Uncorrected (Fatal), type=Transaction Layer": (GPU, "reboot"),
    f"nvidia {GPU}: {AER}Uncorrected (Non-Fatal), type=Transaction Layer": (GPU, "reboot"),
    f"pcieport 0000:00:05.0: AER: Uncorrected (Fatal) error received: {GPU}": (GPU, "reboot"),
    "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000100151": ("CPU 12", "ras-mc-ctl"),
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0": ("MC0", "ras-mc-ctl"),
}
WARNINGS = {
    f"{SXID}12028, Non-fatal, Link 32 egress non-posted PRIV error (First)": SWITCH,
    f"{SXID}20034, Data {{0x50610002}}": SWITCH,
    "mce: [Hardware Error]: Machine check events logged": None,
}
NOTES = {
    f"{SXID}22013, Non-fatal, Link 44 Minion Link DLREQ interrupt": SWITCH,
    f"{SXID}11012, Non-fatal, Link 32 ingress header ECC": SWITCH,
    f"nvidia {GPU}: {AER}Corrected, type=Data Link Layer": GPU,
    "EDAC MC0: 3 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0": "MC0",
    "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: 8c00004000010091": "CPU 12",
}


@pytest.mark.parametrize("line", ERRORS)
def test_what_was_not_corrected_is_an_error(line):
    subject, remedy = ERRORS[line]
    [one] = findings(line)
    assert (one.severity, one.subject) == ("ERROR", subject)
    assert remedy in one.remedy


@pytest.mark.parametrize("line", WARNINGS)
def test_what_may_have_been_survived_is_a_warning(line):
    [one] = findings(line)
    assert (one.severity, one.subject) == ("WARNING", WARNINGS[line])
    assert one.remedy.startswith("sudo ")


@pytest.mark.parametrize("line", NOTES)
def test_what_was_corrected_or_is_no_fault_is_no_complaint(line):
    [one] = findings(line)
    assert (one.severity, one.subject) == ("OK", NOTES[line])
    assert one.message.endswith("it requires no action")


@pytest.mark.parametrize(("count", "severity"), [(99, "OK"), (100, "WARNING")])
@pytest.mark.parametrize("line", [f"nvidia {GPU}: {AER}Corrected, type=Data Link Layer", "EDAC MC0: 1 CE memory read"])
def test_corrected_errors_count_in_numbers(line, count, severity):
    [one] = findings(*[line] * count)
    assert one.severity == severity
    assert f"{count} times since boot" in one.message


def test_a_gpu_that_fell_off_the_bus_is_told_once():
    fell = (
        f"NVRM: Xid (PCI:{GPU[:-2]}): 79, GPU has fallen off the bus.",
        f"NVRM: GPU {GPU}: GPU has fallen off the bus.",
    )
    [one] = findings(*fell)
    assert (one.severity, one.subject) == ("OK", None)


def test_the_driver_s_errors_of_before_it_was_loaded_anew_are_past():
    [one] = findings(f"NVRM: GPU {GPU}: RmInitAdapter failed!", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580")
    assert (one.severity, one.subject) == ("OK", GPU)


NEIGHBOUR = "0000:00:0d.0"


@pytest.mark.parametrize(
    "line", [f"NVRM: GPU {NEIGHBOUR}: RmInitAdapter failed!", f"nvidia {NEIGHBOUR}: {AER}Uncorrected (Fatal), type=x"]
)
@pytest.mark.parametrize(("given", "severity"), [(1, "NOT_APPLICABLE"), (8, "ERROR")])
def test_a_job_is_not_blamed_for_a_neighbour_s_gpu(line, given, severity):
    host = RecordedHost(EIGHT)
    host.nvml_answers["devices"] = host.nvml_answers["devices"][:given]
    torch = {"devices": host.torch["devices"][:given]}
    denied = [f"/dev/nvidia{number}" for number in range(given, 8)]
    [one] = findings(line, machine=EIGHT, nvml=host.nvml_answers, torch=torch, denied=denied)
    assert (one.severity, one.subject) == (severity, NEIGHBOUR)


def test_a_quiet_log():
    [one] = findings("usb 1-1: new high-speed USB device number 5 using xhci_hcd")
    assert (one.severity, one.subject) == ("OK", None)


def test_a_log_that_cannot_be_read_is_unknown_except_in_a_container():
    assert [one.severity for one in findings(files={"/dev/kmsg": None})] == ["NOT_APPLICABLE"]
    assert [one.severity for one in findings(files={"/dev/kmsg": None, "/.dockerenv": None})] == ["UNKNOWN"]


def test_without_a_gpu_there_is_nothing_to_look_for():
    assert [one.severity for one in found(kernel_log, "cpu-only")] == ["NOT_APPLICABLE"]
