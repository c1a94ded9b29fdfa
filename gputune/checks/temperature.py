"""Is this GPU close to the temperature at which it slows itself down?

When idle it should be far below. Under load a margin of a few degrees is normal for some cards, but it leaves no
reserve for a hot day. Clean fans and filters, keep the hot air of neighbouring machines away from the intake, and cool
the room.

Source: nvmlDeviceGetTemperatureThreshold, slowdown.
"""

from gputune.checks._answers import each_gpu, ok, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, share

MOMENTARY = True
MARGIN_CELSIUS = 5


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, _judge, "temperature_celsius", "temperature_slowdown_celsius", lacking=share)


def _judge(gpu: Gpu) -> Finding:
    now, slowdown = gpu.health.temperature_celsius or 0, gpu.health.temperature_slowdown_celsius or 0
    message = f"{now} C; it slows itself down at {slowdown} C"
    if now >= slowdown - MARGIN_CELSIUS:
        return warning(message, "clean its fans and filters, and cool the room")
    return ok(message)
