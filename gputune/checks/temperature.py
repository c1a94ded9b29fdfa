"""Is this GPU close to the temperature at which it slows itself down?

Idle it should be far from it; under load a few degrees below are normal for some cards, and the next hot day takes them.
Clean fans and filters, see that the neighbours' hot air does not go in, and cool the room.

Source: nvmlDeviceGetTemperatureThreshold, slowdown.
"""

from gputune.checks._answers import each_gpu, ok, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, share

MOMENTARY = True
MARGIN_CELSIUS = 5


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, _of, "temperature_celsius", "temperature_slowdown_celsius", lacking=share)


def _of(gpu: Gpu) -> Finding:
    now, slowdown = gpu.health.temperature_celsius or 0, gpu.health.temperature_slowdown_celsius or 0
    message = f"{now} C; it slows itself down at {slowdown} C"
    if now >= slowdown - MARGIN_CELSIUS:
        return warning(message, "clean its fans and filters, and cool the room")
    return ok(message)
