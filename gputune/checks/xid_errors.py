"""Has the driver logged errors of a GPU (Xid) since boot?

The NVIDIA driver writes a numbered Xid error to the kernel's log when something goes wrong on a GPU. Some are caused by
a program (13: it read outside its memory; 31: a page fault), others by the hardware or the driver: 79 is a GPU that
fell off the bus, 48, 64 and 95 are memory errors, 74 is NVLink, 119 and 120 are the card's own processor; 154 says what
has to be done. An error that asks for a reset, a reboot or a new part stays one until the log or NVML says that it is
mended; drivers before 565 do not log a reset, after which only a reboot or a reload of the driver settles it. Usually
only root on the host may read that log: `sudo dmesg | grep Xid`.

Source: NVIDIA, Xid Errors, Analyzing Xid Errors with the Xid Catalog.
"""

from gputune.checks._answers import Finding, Findings, Measurements, counted, error, not_applicable, ok, warning
from gputune.checks._remedies import reset
from gputune.checks.kernel_log import anothers, gpu_at, look, not_read, reboot
from gputune.checks.recovery_action import IMEX, RESTART_IMEX
from gputune.facts import Facts, Gpu
from gputune.facts.xids import RECOVERY, Xid

NVLINK = {74, 136, *range(144, 151), 155}
HARDWARE = {46, 48, 61, 62, 64, 95, 109, 110, 119, 120, 140, 143, 156, 158, 171, 172, *NVLINK}
REBOOT = {79: "if the GPU stays away, power the machine off and on", 151: "a virtual machine is restarted"}
UNPLUGGED = 54
PROGRAM = {13, 31, 43, 45}
HARMLESS = {63, 92, 106, 107, 121, 162}
CONTAINED = 94
UPDATE = 78
"""By NVIDIA's catalogue: NVLink's errors; all that a reset clears; what a reboot clears; a power cable; a program's
fault; mere notes; a memory error that hit one program only; a virtual GPU whose drivers do not fit."""
LASTING = {*HARDWARE, *REBOOT, UNPLUGGED, CONTAINED}
WORDS = "NVRM: Xid"
REPLACE = "replace the card if it comes back"


def check(facts: Facts, measurements: Measurements) -> Findings:
    if unread := not_read(facts, WORDS):
        yield unread
    elif not facts.driver.xids:
        yield ok("the kernel's log has no Xid error")
    for xid in facts.driver.xids or ():
        yield _judge(facts, xid)


def _judge(facts: Facts, xid: Xid) -> Finding:
    ago = "" if xid.hours_ago is None else f", the last {xid.hours_ago:g} h ago"
    message = f"Xid {xid.number}, {counted(xid.count, 'time')} since boot{ago}, of the GPU at {xid.address}"
    if anothers(facts, xid.address):
        return not_applicable(f"{message}, which this container or job was not given", xid.address)
    if xid.number in HARMLESS or (xid.number == RECOVERY and xid.recovery == "none"):
        return ok(f"{message}: a note that requires no action", xid.address)
    asked = xid.recovery if xid.number == RECOVERY else xid.number in LASTING
    if asked and not (xid.number in NVLINK and xid.nonfatal):
        return _lasting(xid, gpu_at(facts, xid.address), message)
    meaning, care = _passing(xid)
    return warning(message + meaning, look(WORDS, care), xid.address)


def _lasting(xid: Xid, gpu: Gpu | None, message: str) -> Finding:
    if xid.mended and gpu:
        return ok(f"{message}; by the log it was mended since", xid.address)
    if xid.number == CONTAINED:
        message += ": a memory error that affected only the program that hit it"
        remedy = _reset(gpu, "restart that program now, and reset the GPU when it is free")
        return warning(message, remedy, xid.address)
    message += f": the driver asks for {xid.recovery}" if xid.recovery and not xid.mended else ""
    if xid.recovery and not _to_reboot(xid) and gpu and gpu.health.recovery_action == "none":
        care = look(WORDS, "nothing has to be done unless it comes back")
        return warning(f"{message}; NVML asks for no recovery any more", care, xid.address)
    # The GPU itself works then, only not together with those of other hosts.
    judge = warning if xid.number == RECOVERY and xid.recovery == IMEX else error
    return judge(message, _recover(xid, gpu), xid.address)


def _passing(xid: Xid) -> tuple[str, str]:
    """The meaning of an error that leaves no mark on the GPU, and what to do about it."""
    if xid.number in PROGRAM:
        return ": usually caused by a program", "it names the program"
    if xid.number in NVLINK:
        return ": an NVLink error that the driver calls nonfatal", "if it stays: nvidia-smi nvlink --errorcounters"
    if xid.number == UPDATE:
        return ": a virtual GPU did not start", "update the drivers of host and guest, so that they fit"
    return "", f"NVIDIA's Xid catalogue says what {xid.number} requires"


def _recover(xid: Xid, gpu: Gpu | None) -> str:
    if xid.number == UNPLUGGED:
        return "power the machine off and plug in the card's auxiliary power cables"
    if _to_reboot(xid):
        return reboot(f"{REBOOT.get(xid.number, 'power it off and on if that is not enough')}; {REPLACE}")
    if xid.recovery == IMEX:
        return RESTART_IMEX
    peers = "first end the jobs of all GPUs that exchange data with it"
    return _reset(gpu, f"{peers}; {REPLACE}" if "drain" in (xid.recovery or "") or xid.number in NVLINK else REPLACE)


def _to_reboot(xid: Xid) -> bool:
    return xid.number in REBOOT or (xid.recovery or "").endswith(("reboot", "bus reset"))


def _reset(gpu: Gpu | None, note: str) -> str:
    """nvidia-smi can reset only a GPU that it lists."""
    return reset(gpu, note=note) if gpu else reboot(note)
