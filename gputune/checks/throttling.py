"""Is this GPU slowed down?

The driver gives the reasons for a clock below the maximum as bits, of which several may be set. The software power cap
alone is normal under load: large matmuls draw all the power that a card may use. Abnormal are heat (clean the fans and
filters, cool the room) and the hardware's own brake (power supply, cables, or heat), most of all where nothing runs.

Source: NVML, clocks event reasons, read now and gathered during a probe's measurements.
"""

from gputune.checks import Finding
from gputune.checks._answers import Measurements, each_gpu, not_read, ok, throttle_reasons, unknown, unmeasured, warning
from gputune.checks._questions import consumer_or_share
from gputune.checks._remedies import address_of, typed
from gputune.facts import Facts, Gpu

MOMENTARY = True
SETTING = 0x02  # clocks held by a setting: see clock_lock
COOL = "cool it: fans, filters, the room's temperature"
FAULTS = {
    0x08: ("hardware slowdown", "too hot, or too little power reaches it"),
    0x20: ("software thermal slowdown", COOL),
    0x40: ("hardware thermal slowdown", COOL),
    0x80: ("power brake", "check the power supply, its cables and its share of the rack's power"),
}
NORMAL = {
    0x01: "idleness", 0x04: "software power cap", 0x10: "sync boost", 0x100: "display clocks", 0x200: "board limit",
    0x400: "reliability voltage",
}  # fmt: skip


@each_gpu()
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    now, under_load = gpu.health.clocks_event_reasons, throttle_reasons(facts, gpu, measurements)
    if under_load is not None and _faults(under_load):
        return _slowed(gpu, under_load, "under load")
    if now is not None and _faults(now):
        return _slowed(gpu, now, "at this moment")
    if under_load is None:
        unread = not_read(facts, gpu, "clocks_event_reasons", lacking=consumer_or_share)
        return unread or unmeasured(facts, gpu, measurements)
    if unlisted := under_load & ~sum([SETTING, *FAULTS, *NORMAL]):
        return unknown(f"slowed down under load for a reason that gputune does not know ({unlisted:#x})")
    normal = [name for bit, name in NORMAL.items() if under_load & bit]
    held = f"under load limited only by {', '.join(normal)}, which is normal"
    return ok(held if normal else "nothing slowed it down under load")


def _faults(bits: int) -> list[tuple[str, str]]:
    return [fault for bit, fault in FAULTS.items() if bits & bit]


def _slowed(gpu: Gpu, bits: int, when: str) -> Finding:
    names, causes = zip(*_faults(bits), strict=True)
    look = f"nvidia-smi -i {address_of(gpu)} -q -d PERFORMANCE,TEMPERATURE,POWER"
    remedy = typed(look, note=f"shows it; {'; '.join(dict.fromkeys(causes))}")
    return warning(f"slowed down {when} by {', '.join(names)}", remedy)
