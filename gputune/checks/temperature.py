"""Is this GPU close to the temperature at which it slows itself down?

When idle it should be far below. Under load a margin of a few degrees is normal for some cards, but it leaves no
reserve for a hot day. Clean fans and filters, keep neighbouring machines' hot air away from the intake, cool the room.

Source: nvmlDeviceGetTemperatureThreshold, slowdown.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, ok, warning
from gputune.checks._questions import share

MOMENTARY = True
MARGIN_CELSIUS = 5


@each_gpu("temperature_celsius", "temperature_slowdown_celsius", lacking=share)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    now, slowdown = gpu.health.temperature_celsius or 0, gpu.health.temperature_slowdown_celsius or 0
    message = f"{now} C; it slows itself down at {slowdown} C"
    if now >= slowdown - MARGIN_CELSIUS:
        return warning(message, "clean its fans and filters, and cool the room")
    return ok(message)
