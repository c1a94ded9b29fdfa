"""Does a setting hold this GPU's clock below its maximum?

`nvidia-smi -ac` sets application clocks and `nvidia-smi -lgc` locks the clock, for steady measurements or to save power,
and both stay when the one who set them is gone. `sudo nvidia-smi -rac` and `sudo nvidia-smi -rgc` take them back. A lock
shows under load only, which a probe puts on.

Source: nvmlDeviceGetApplicationsClock and its default; NVML's clocks event reason 0x2, now and in a probe's measurements.
"""

from dataclasses import replace

from gputune.checks._answers import each_gpu, ok, smi, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, consumer_or_share
from gputune.checks._load import throttle_reasons
from gputune.checks.throttling import SETTING

FIELDS = ("sm_clock_application_mhz", "sm_clock_application_default_mhz", "sm_clock_max_mhz", "clocks_event_reasons")


def check(facts: Facts, measurements: Measurements) -> Findings:
    held = [gpu for gpu in facts.gpus if _bits(facts, gpu, measurements) & SETTING]
    rest = replace(facts, gpus=tuple(gpu for gpu in facts.gpus if gpu not in held))
    for gpu in held:
        yield warning("a setting holds its clock below its maximum", smi(gpu, "-rgc", "-rac"), f"GPU {gpu.index}")
    if rest.gpus or not held:
        yield from each_gpu(rest, lambda gpu: _of(facts, gpu, measurements), *FIELDS, lacking=consumer_or_share)


def _bits(facts: Facts, gpu: Gpu, measurements: Measurements) -> int:
    return (throttle_reasons(facts, gpu, measurements) or 0) | (gpu.health.clocks_event_reasons or 0)


def _of(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    clock, default = gpu.health.sm_clock_application_mhz or 0, gpu.health.sm_clock_application_default_mhz or 0
    if clock < default:
        return warning(f"its application clock is set to {clock} MHz, of {default} by default", smi(gpu, "-rac"))
    if throttle_reasons(facts, gpu, measurements) is None:
        return ok("its application clock is not below the default, and no lock shows at rest")
    return ok(f"no setting holds its clock below {gpu.health.sm_clock_max_mhz} MHz")
