"""Was this GPU slowed down under load?

The driver gives the reasons for a clock below the maximum as bits, of which several may be set. The software power cap
alone is normal: large matmuls draw all the power that a card may use. Abnormal are heat (clean the fans and filters,
cool the room) and the hardware's own brake (power supply, cables, or heat).

Source: NVML, clocks event reasons, gathered during a probe's measurements.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, ok, unknown, warning
from gputune.checks._load import throttle_reasons, unmeasured

MOMENTARY = True
SETTING = 0x02  # clocks held by a setting: see clock_lock
FAULTS = {
    0x08: ("hardware slowdown", "nvidia-smi -q -d PERFORMANCE"),
    0x20: ("software thermal slowdown", "cool it: fans, filters, the room's temperature"),
    0x40: ("hardware thermal slowdown", "cool it: fans, filters, the room's temperature"),
    0x80: ("power brake", "check the power supply, its cables and its share of the rack's power"),
}
NORMAL = {
    0x01: "idleness", 0x04: "software power cap", 0x10: "sync boost", 0x100: "display clocks", 0x200: "board limit",
    0x400: "reliability voltage",
}  # fmt: skip


@each_gpu()
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    bits = throttle_reasons(facts, gpu, measurements)
    if bits is None:
        return unmeasured(facts, gpu, measurements)
    if faults := [fault for bit, fault in FAULTS.items() if bits & bit]:
        remedies = dict.fromkeys(remedy for _, remedy in faults)
        return warning(f"slowed down under load by {', '.join(name for name, _ in faults)}", "; ".join(remedies))
    if unlisted := bits & ~sum([SETTING, *FAULTS, *NORMAL]):
        return unknown(f"slowed down under load for a reason that gputune does not know ({unlisted:#x})")
    normal = [name for bit, name in NORMAL.items() if bits & bit]
    held = f"under load limited only by {', '.join(normal)}, which is normal"
    return ok(held if normal else "nothing slowed it down under load")
