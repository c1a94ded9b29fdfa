"""Has the driver logged errors of a GPU (Xid) since boot?

The NVIDIA driver writes a numbered Xid error to the kernel's log when something goes wrong on a GPU. Some are caused by
a program (13: it read outside its memory; 31: a page fault), others by the hardware or the driver: 79 is a GPU that
fell off the bus, 48, 64 and 95 are memory errors, 74 is NVLink, 119 and 120 are the card's own processor. Usually only
root on the host may read that log: `sudo dmesg | grep Xid`.

Source: NVIDIA, XID Errors.
"""

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, counted, error, no_gpu, not_applicable, ok, unknown, warning
from gputune.checks._questions import gap, has_gpu
from gputune.facts import Facts
from gputune.facts.driver import Xid

HARDWARE = {46, 48, 61, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, *range(144, 151)}
PROGRAM = {13, 31, 43, 45}
HARMLESS = {63, 92, 121}
CONTAINED = 94
"""By NVIDIA's catalogue: a failed GPU or fabric; a program's fault; a mere note; an error that hit one program only."""
OLD_HOURS = 24
"""After this time an error is a warning: the log keeps it until the next boot, even if the GPU has been reset since."""
LOOK = "sudo dmesg | grep Xid"


def check(facts: Facts, measurements: Measurements) -> Findings:
    xids, why = facts.driver.xids, gap(facts, "driver.xids")
    if not has_gpu(facts):
        yield no_gpu(facts)
    elif "/dev/dxg" in facts.container.gpu_device_files:
        yield not_applicable("in WSL the driver logs in Windows")
    elif why and why.cause == "no_such_file" and facts.container.kind:
        yield not_applicable(f"this container has no kernel log; on the host: {LOOK}")
    elif xids is None:
        reason = why.reason if why else "no driver is loaded"
        yield unknown(f"the kernel's log could not be read ({reason}); on the host: {LOOK}", fact="driver.xids")
    elif not xids:
        yield ok("the kernel's log has no Xid error")
    for xid in xids or ():
        yield _judge(xid)


def _judge(xid: Xid) -> Finding:
    ago = "" if xid.hours_ago is None else f", the last {xid.hours_ago:g} h ago"
    message = f"Xid {xid.number}, {counted(xid.count, 'time')} since boot{ago}, of the GPU at {xid.address}"
    if xid.number in HARMLESS:
        return ok(f"{message}: a note that requires no action", xid.address)
    if xid.number == CONTAINED:
        message += ": a memory error that affected only the program that hit it"
        return warning(message, "restart that program, and reset the GPU when it is free", xid.address)
    if xid.number in PROGRAM:
        return warning(f"{message}: usually caused by a program", f"on the host: {LOOK} names the program", xid.address)
    if xid.number not in HARDWARE:
        remedy = f"on the host: {LOOK}; NVIDIA's Xid catalogue says what {xid.number} requires"
        return warning(message, remedy, xid.address)
    if xid.hours_ago is not None and xid.hours_ago > OLD_HOURS:
        return warning(message, f"on the host: {LOOK}; reboot it, unless the GPU has been reset since", xid.address)
    remedy = f"on the host: {LOOK}; drain it, reset the GPU or reboot, and replace the card if it comes back"
    return error(message, remedy, xid.address)
