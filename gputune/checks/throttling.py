"""What slowed this GPU down under load?

The driver tells why a clock is below its maximum, as bits of which several may be set. The software power cap alone is
normal: large matmuls draw all the power that a card may have. The others are not: heat (clean the fans and filters, cool
the room), and the hardware's own brake (the power supply, its cables, or heat).

Source: NVML, clocks event reasons, gathered during a probe's measurements.
"""

from gputune.checks._answers import each_gpu, ok, unknown, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements
from gputune.checks._load import throttle_reasons, unmeasured

MOMENTARY = True
SETTING = 0x02  # clocks held by a setting: see clock_lock
FAULTS = {
    0x08: ("hardware slowdown", "nvidia-smi -q -d PERFORMANCE"),
    0x20: ("software thermal slowdown", "cool it: fans, filters, the room's temperature"),
    0x40: ("hardware thermal slowdown", "cool it: fans, filters, the room's temperature"),
    0x80: ("power brake", "see the power supply, its cables and its share of the rack's power"),
}
NORMAL = {
    0x01: "idleness", 0x04: "software power cap", 0x10: "sync boost", 0x100: "display clocks", 0x200: "board limit",
    0x400: "reliability voltage",
}  # fmt: skip


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, lambda gpu: _of(facts, gpu, measurements))


def _of(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    bits = throttle_reasons(facts, gpu, measurements)
    if bits is None:
        return unmeasured(facts, gpu, measurements)
    if faults := [told for bit, told in FAULTS.items() if bits & bit]:
        remedies = dict.fromkeys(remedy for _, remedy in faults)
        return warning(f"slowed down under load by {', '.join(name for name, _ in faults)}", "; ".join(remedies))
    if strange := bits & ~sum([SETTING, *FAULTS, *NORMAL]):
        return unknown(f"held under load for a reason that gputune does not know ({strange:#x})")
    normal = [name for bit, name in NORMAL.items() if bits & bit]
    return ok(
        f"under load held only by {', '.join(normal)}, as is normal" if normal else "nothing slowed it under load"
    )
