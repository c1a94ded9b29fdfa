"""What the kernel's log tells: Xid errors of GPUs, and errors of NVSwitches, PCIe links, CPUs and memory."""

import pytest
from recorded import EIGHT, RecordedHost, facts_of, says, table

from gputune.checks import xid_errors
from gputune.facts import Gap

DRIVER = facts_of().driver.kernel_version
LOOK = "sudo dmesg --ctime | grep -E 'NVRM: Xid'  # on the host, as root"
OURS, OTHER, SEVENTH = "0000:00:06", "0000:3b:00", "0000:00:0d"
"""The address of the first GPU, one that is not here, and the eighth GPU's."""
RESET, REBOOT = "--gpu-reset", "^sudo systemctl reboot  # on the host, as root; ends its jobs"
BARE, NO_LIST = {"/.dockerenv": None}, {"FieldValues:[230]": {"unreadable": "NVML: Not Supported"}}


def line(xid, address=OURS, text="pid=1, name=x"):
    return f"3,9,88,-;NVRM: Xid (PCI:{address}): {xid}, {text}\n"


def recovery(action, before="0x0 (None)", address=OURS):
    return line(154, address, f"GPU recovery action changed from {before} to {action}")


def logged(expected, text, message="", remedy="", *, files=None, **more):
    return says(expected, message, remedy, files={"/dev/kmsg": text} | (files or {}), **more)


def about(severity, address=OURS):
    return [f"{severity} {address}"]


HARDWARE = [46, 48, 61, 62, 64, 74, 95, 109, 110, 119, 120, 136, 140, 143, *range(144, 151), 155, 156, 158, 171, 172]
LOADED = "5,9,99,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.159.04\n"
FELL = line(79, text="GPU has fallen off the bus.")
AGAIN = FELL.replace(OURS, OTHER)
TIMEOUT, TO_RESET, TO_REBOOT = line(119), recovery("0x1 (GPU Reset Required)"), recovery("0x2 (Node Reboot Required)")
WHAT = "=Xid {}, 1 time since boot, of the GPU at " + OURS
test_xid_errors = table(
    "xid_errors",
    {
        f"{xid} asks for a reset": logged(
            about("ERROR"), line(xid), WHAT.format(xid),
            (f"sudo nvidia-smi -i 00000000:{OURS[5:]}.0 {RESET}", "replace the card if it comes back"),
        )
        for xid in HARDWARE
    },
    {f"{xid} asks for a restart": logged(about("ERROR"), line(xid), "", REBOOT) for xid in (79, 151)},
    {
        f"{xid} of a GPU that is not listed": logged(about("ERROR", OTHER), line(xid, OTHER), "", REBOOT)
        for xid in (79, 119)
    },
    {
        f"the driver asks for {action}": logged(about("ERROR"), recovery(action), "", does, gpu=NO_LIST)
        for action, does in {
            "0x1 (GPU Reset Required)": RESET, "0x1 (PF FLR)": RESET, "0x2 (Node Reboot Required)": "reboot",
            "0x2 (OS Reboot)": "reboot", "0x3 (Drain P2P)": RESET, "0x4 (Drain and Reset)": RESET,
            "0x6 (Bus Reset)": "reboot", "0x7 (System Reboot)": "reboot", "0x63 (Something New)": RESET,
        }.items()
    },
    {
        f"{xid} of a program": logged(
            about("WARNING"), line(xid), (f"Xid {xid},", "program"), f"={LOOK}; it names the program"
        )
        for xid in (13, 31, 43, 45)
    },
    {
        f"{xid} is a note": logged(about("OK"), line(xid), f"^Xid {xid}, 1 time since boot")
        for xid in (63, 92, 106, 107, 121, 162)
    },
    {
        f"{xid} is to be looked up": logged(
            about("WARNING"), line(xid), WHAT.format(xid), f"NVIDIA's Xid catalogue says what {xid} requires"
        )
        for xid in (8, 32, 68, 69, 93, 142, 154, 157, 163, 169, 999)
    },
    {
        "a power cable": logged("ERROR", line(54), "", "power cables"),
        "an IMEX domain": logged("WARNING", recovery("0x5 (Recover IMEX Domain)"), "", "nvidia-imex", gpu=NO_LIST),
        "no recovery": logged(about("OK"), recovery("0x0 (None)", "0x1 (GPU Reset Required)")),
        "a contained memory error": logged(
            "WARNING", line(94), "a memory error that affected only the program that hit it", RESET
        ),
        "a virtual GPU": logged("WARNING", line(78), "", "update the drivers"),
        "a nonfatal NVLink error": logged("WARNING", line(145, text="RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)")),
        "a fatal NVLink error": logged("ERROR", line(145, text="RLW_RXPIPE Fatal XC0 i0 Link 13 (0x0409a0c2)")),
        "each kind on each GPU": logged(
            [*about("WARNING"), "WARNING 0000:5e:00", *about("ERROR")],
            line(31) + line(31, "0000:5e:00") + line(79) + line(31), "^Xid 31, 2 times",
        ),
        "not back, so not mended": logged("ERROR", AGAIN + LOADED),
        "no error": logged(["OK"], ""),
        "not allowed": says(
            "UNKNOWN", ("Operation not permitted", LOOK),
            facts={
                "driver.xids": None,
                "gaps": (Gap(fact="driver.xids", reason="/dev/kmsg: Operation not permitted"),),
            },
        ),
        "a container has no log": logged("NOT_APPLICABLE", None, LOOK),
        "a host without a log": logged("UNKNOWN", None, "No such file", files=BARE),
        "no driver": says("UNKNOWN", files={"/proc/driver/nvidia/version": None}),
        "WSL": says("NOT_APPLICABLE", files={"/dev/dxg": ""}),
        "the last GPU": logged(
            ["NOT_APPLICABLE", *about("ERROR", OTHER)], line(79, OTHER), machine="cpu-only",
            files={"/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  now\n"},
        ),
    },
    {
        f"written as {form}": logged(about("ERROR"), FELL.replace(f"(PCI:{OURS})", form))
        for form in (f"({OURS})", f"(PCI:{OURS})", f"(PCI:{OURS}.0)", f"(PCI:{OURS} GPU-I:05)")
    },
    {
        f"{hours} hours ago": logged(
            "ERROR", FELL.replace("3,9,88", "3,9,0"), f"the last {hours} h ago",
            files={"/proc/uptime": f"{hours * 3600} 1"},
        )
        for hours in (1, 25, 1000)
    },
)  # fmt: skip


def first_but_154(text, **facts):
    findings = xid_errors.check(facts_of(files={"/dev/kmsg": text}, **facts), ())
    return next(one.severity for one in findings if "Xid 154" not in one.message)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (FELL + recovery("0x0 (None)", "0x2 (Node Reboot Required)"), "OK"),
        (FELL + LOADED, "OK"),
        (LOADED + FELL, "ERROR"),
        (recovery("0x0 (None)", "0x1 (GPU Reset Required)") + FELL, "ERROR"),
        (FELL + LOADED + FELL, "ERROR"),
        (FELL + recovery("0x0 (None)", "0x1 (x)", "0000:5e:00"), "ERROR"),
    ],
)
def test_what_the_log_says_later_mends_an_error(text, severity):
    assert first_but_154(text) == severity


ASKS = {"none": 0, "gpu reset": 1}


@pytest.mark.parametrize(
    ("text", "now", "severity"),
    [
        (TIMEOUT + TO_RESET, "none", "WARNING"),
        (TIMEOUT + TO_RESET, "gpu reset", "ERROR"),
        (TIMEOUT + TO_RESET, None, "ERROR"),
        (TIMEOUT, "none", "ERROR"),  # it never asked for a reset, so that NVML's answer says nothing of one
        (TO_RESET + TIMEOUT, "none", "ERROR"),  # the same, after a reset
        (TIMEOUT + TO_REBOOT, "none", "ERROR"),  # the machine was not rebooted since, or the log would be empty
        (FELL + TO_RESET, "none", "ERROR"),
    ],
)
def test_a_reset_that_the_log_asked_for_and_nvml_does_not_any_more_was_made(text, now, severity):
    value = [{"fieldId": 230, "valueType": 1, "nvmlReturn": 0, "value": {"uiVal": ASKS.get(now)}}]
    assert first_but_154(text, gpu=NO_LIST if now is None else {"FieldValues:[230]": value}) == severity


def eight(given, listed=None):
    """Eight GPUs, of which this process may open the first `given`, and NVML lists the first `listed`."""
    host, count = RecordedHost(EIGHT), given if listed is None else listed
    nvml = {**host.nvml_answers, "devices": host.nvml_answers["devices"][:count]}
    denied = [f"/dev/nvidia{number}" for number in range(given, 8)]
    return {"machine": EIGHT, "nvml": nvml, "torch": {"devices": host.torch["devices"][:count]}, "denied": denied}


def neighbours(expected, given, listed, message="", *, files=None, environ=None):
    return logged(expected, FELL.replace(OURS, SEVENTH), message, files=files, environ=environ, **eight(given, listed))


HOST = {"NVIDIA_VISIBLE_DEVICES": None}
test_xids_of_other_jobs = table(
    "xid_errors",
    {
        f"one GPU was given: {environ}": neighbours(
            about("NOT_APPLICABLE", SEVENTH), 1, 1, "which this container or job was not given", files=files,
            environ=environ,
        )
        for files, environ in [
            ({}, {}), (BARE, HOST), (BARE, {**HOST, "SLURM_JOB_ID": "1"}), ({}, {"KUBERNETES_SERVICE_HOST": "x"})
        ]
    },
    {
        "all were given to a container": neighbours(about("ERROR", SEVENTH), 8, 7),
        "all of a host": neighbours(about("ERROR", SEVENTH), 8, 7, files=BARE, environ=HOST),
        "one of two": neighbours("ERROR", 2, 1),
        "the host's device file is gone too": neighbours(
            "ERROR", 8, 7, files={**BARE, "/dev/nvidia7": None}, environ=HOST
        ),
    },
)  # fmt: skip

GPU, SWITCH, NEIGHBOUR = f"{OURS}.0", "0000:c1:00.0", f"{SEVENTH}.0"
SXID, AER = f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): ", "PCIe Bus Error: severity="
CORRECTED = f"nvidia {GPU}: {AER}Corrected, type=Data Link Layer"


def kernel(expected, *lines, message="", remedy="", **more):
    return logged(expected, "".join(f"3,9,88,-;{one}\n" for one in lines), message, remedy, **more)


def at(severity, place):
    return [f"{severity} {place}" if place else severity]


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
    CORRECTED: GPU,
    "EDAC MC0: 3 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0": "MC0",
    "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: 8c00004000010091": "CPU 12",
}
test_kernel_log = table(
    "kernel_log",
    {text: kernel(at("ERROR", place), text, remedy=remedy) for text, (place, remedy) in ERRORS.items()},
    {text: kernel(at("WARNING", place), text, remedy="sudo ") for text, place in WARNINGS.items()},
    {text: kernel(at("OK", place), text, message="it requires no action") for text, place in NOTES.items()},
    {
        f"{count} times {text}": kernel(severity, *[text] * count, message=f"{count} times since boot")
        for text in (CORRECTED, "EDAC MC0: 1 CE memory read")
        for count, severity in [(99, "OK"), (100, "WARNING")]
    },
    {
        f"{given} were given: {text}": kernel(at(severity, NEIGHBOUR), text, **eight(given))
        for text in (
            f"NVRM: GPU {NEIGHBOUR}: RmInitAdapter failed!", f"nvidia {NEIGHBOUR}: {AER}Uncorrected (Fatal), type=x"
        )
        for given, severity in [(1, "NOT_APPLICABLE"), (8, "ERROR")]
    },
    {
        "an Xid tells of a GPU that fell off the bus": kernel(
            ["OK"], f"NVRM: Xid (PCI:{OURS}): 79, GPU has fallen off the bus.",
            f"NVRM: GPU {GPU}: GPU has fallen off the bus.",
        ),
        "before the driver was loaded anew": kernel(
            at("OK", GPU), f"NVRM: GPU {GPU}: RmInitAdapter failed!", LOADED[9:].strip()
        ),
        "a quiet log": kernel(["OK"], "usb 1-1: new high-speed USB device number 5 using xhci_hcd"),
        "no log in a container": logged("NOT_APPLICABLE", None),
        "no log on a host": logged("UNKNOWN", None, files=BARE),
        "no GPU": says("NOT_APPLICABLE", machine="cpu-only"),
    },
)  # fmt: skip
