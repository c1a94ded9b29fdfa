"""The errors in the kernel's log beyond Xid, and how long it takes to read all of them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import facts_of

from gputune.facts import kernel_messages, xids
from gputune.facts.kernel_messages import KernelError


def errors(*lines, **overrides):
    log = "".join(f"3,9,88,-;{line}\n" for line in lines)
    files = {"/dev/kmsg": log} | overrides.pop("files", {})
    return facts_of(files=files, **overrides).driver.kernel_errors


def error(kind, where, grade, count=1, **others):
    return KernelError(kind=kind, where=where, grade=grade, count=count, **others)


SXID = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): "
GPU, OTHER_GPU, NIC = "0000:00:06.0", "0000:3b:00.0", "0000:00:03.0"
UNCORRECTED, FATAL = (
    "PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=x",
    "AER: Uncorrected (Fatal) error received",
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [f"{SXID}12028, Non-fatal, Link 32 egress non-posted PRIV error", f"{SXID}12028, Severity 0 Engine"],
            error("nvswitch", "0000:c1:00.0", "nonfatal", number=12028),
        ),
        ([f"{SXID}20034, Fatal, Link 30 x"] * 2, error("nvswitch", "0000:c1:00.0", "fatal", 2, number=20034)),
        ([f"{SXID}20034, Data {{0x50610002}}"], error("nvswitch", "0000:c1:00.0", "unknown", number=20034)),
        (
            ["NVRM: RmInitAdapter failed! (0x26:0xffff:1290)", f"NVRM: GPU {OTHER_GPU}: RmInitAdapter failed"],
            error("start_failed", OTHER_GPU, "fatal"),
        ),
        (["NVRM: RmInitAdapter failed! (0x26:0xffff:1290)"], error("start_failed", None, "fatal")),
        ([f"NVRM: GPU {OTHER_GPU}: rm_init_adapter failed, device minor 3"], error("start_failed", OTHER_GPU, "fatal")),
        ([f"NVRM: GPU {OTHER_GPU}: GPU has fallen off the bus."], error("off_the_bus", OTHER_GPU, "fatal")),
        (
            [
                f"NVRM: The NVIDIA GPU {OTHER_GPU}",
                "NVRM: (PCI ID: 10de:2901) installed in this system has",
                "NVRM: fallen off the bus and is not responding to commands.",
            ],
            error("off_the_bus", OTHER_GPU, "fatal"),
        ),
        ([f"nvidia {GPU}: {UNCORRECTED}"], error("pcie", GPU, "uncorrected", gpus=(GPU,))),
        ([f"nvidia {GPU}: AER: {UNCORRECTED}"], error("pcie", GPU, "uncorrected", gpus=(GPU,))),
        ([f"pcieport {NIC}: {FATAL}: {GPU}"], error("pcie", GPU, "fatal", gpus=(GPU,))),
        ([f"pcieport {NIC}: AER: Uncorrectable (Fatal) error message received from {GPU}"],
            error("pcie", GPU, "fatal", gpus=(GPU,))),
        ([f"nvidia {OTHER_GPU}: AER: can't recover (no error_detected callback)"],
            error("pcie", OTHER_GPU, "uncorrected", gpus=(OTHER_GPU,))),
        ([f"nvidia {GPU}: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Receiver ID)"] * 3,
            error("pcie", GPU, "corrected", 3, gpus=(GPU,))),
        (["mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000100151"],
            error("machine_check", "CPU 12", "uncorrected")),
        (["mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: 8c00004000010091"],
            error("machine_check", "CPU 12", "corrected")),
        (["mce: [Hardware Error]: Machine check events logged"], error("machine_check", None, "unknown")),
        (["mce: [Hardware Error]: Machine check events logged", "EDAC MC1: 2 CE memory read error on CPU_SrcID#0"],
            error("memory", "MC1", "corrected", 2)),
        (["EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0"], error("memory", "MC0", "uncorrected")),
        (["{1}[Hardware Error]: event severity: fatal"], error("machine_check", None, "fatal")),
    ],
)  # fmt: skip
def test_an_error_that_is_not_an_xid(lines, expected):
    assert errors(*lines) == (expected,)


@pytest.mark.parametrize(
    "line",
    [
        f"pcieport {NIC}: {UNCORRECTED}",
        f"pcieport {NIC}: {FATAL}: {NIC}",
        f"mlx5_core {NIC}: {UNCORRECTED}",
        f"NVRM: Xid (PCI:{OTHER_GPU[:-2]}): 79, GPU has fallen off the bus.",
        "[Hardware Error]: event severity: fatal",  # of the boot before
        "mce: CPU0: Thermal monitoring enabled (TM1)",
        "EDAC MC: Ver: 3.0.0",
        "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0",
        "pci 0000:00:06.0: AER: enabled with IRQ 24",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04",
    ],
)
def test_another_device_s_error_and_ordinary_lines_are_none(line):
    assert errors(line) == ()


def test_an_error_of_a_bridge_is_its_gpus():
    [found] = kernel_messages.read(
        [f"3,9,88,-;pcieport 0000:3a:00.0: {UNCORRECTED}"], lambda address: (OTHER_GPU,) * (address == "0000:3a:00.0")
    )
    assert (found.where, found.gpus) == ("0000:3a:00.0", (OTHER_GPU,))


def test_the_driver_s_own_errors_are_mended_when_it_is_loaded_anew():
    again = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.159.04"
    found = errors(f"{SXID}12028, Non-fatal, x", f"nvidia {GPU}: {UNCORRECTED}", again, f"{SXID}20034, Fatal, x")
    assert {(one.kind, one.number): one.mended for one in found} == {
        ("nvswitch", 12028): True,
        ("pcie", None): False,
        ("nvswitch", 20034): False,
    }


WORDS = [
    "NVRM: Xid (", "PCI:0000:3b:00", ")", ": 154, ", " to 0x", "2 (", "SXid (PCI:", "0000:c1:00.0): 1, Fatal",
    "nvidia ", "0000:3b:00.0", ": AER: ", "PCIe Bus Error: severity=", "Un", "corrected", " (Fatal)",
    " error received: ", "EDAC MC0: ", "1 UE ", "[Hardware Error]: ", "CPU 1: Machine Check: 0 Bank 1: ",
    "ffffffffffffffff", "\n", "3,9,88,-;", "GPU ", "RmInitAdapter failed", "fallen off the bus",
    "NVRM: loading NVIDIA UNIX",
]  # fmt: skip


@pytest.mark.slow
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=30).map("".join))
def test_any_log_is_read(log):
    lines = log.split("\n")
    assert all(xid.count > 0 for xid in xids.read(lines, 1.0))
    assert all(one.count > 0 for one in kernel_messages.read(lines, lambda address: (address,)))


LINES = 50_000
LOGS = {
    "ordinary": "usb 1-1: new high-speed USB device number 5 using xhci_hcd, and all else is well too",
    "an Xid": "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python, Ch 00000008, intr 10000000",
    "openings": "NVRM: Xid (" * 40,
    "an SXid": f"{SXID}12028, Non-fatal, Link 32",
    "colons": ": AER: PCIe Bus Error" * 20,
    "machine checks": "[Hardware Error]: CPU " * 20,
    "memory": "EDAC MC0: " * 40,
}


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
def test_a_long_log_takes_a_moment(log):
    lines = [f"3,9,88,-;{LOGS[log]}"] * LINES
    start = time.process_time()
    xids.read(lines, 1.0)
    kernel_messages.read(lines, lambda address: ())
    assert time.process_time() - start < 1.0  # some 0.1 s; an hour if it were quadratic


@pytest.mark.slow
def test_so_do_many_different_errors():
    lines = [
        f"NVRM: Xid (PCI:{number // 9:04x}:3b:00): {(79, 154)[number % 2]}, x to 0x0 (None)" for number in range(LINES)
    ]
    lines += [f"nvidia-nvswitch0: SXid (PCI:{number:04x}:c1:00.0): 1, Data" for number in range(LINES)]
    start = time.process_time()
    assert xids.read(lines, 1.0)
    assert kernel_messages.read(lines, lambda address: ())
    assert time.process_time() - start < 3.0
