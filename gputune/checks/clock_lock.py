"""Does a setting hold this GPU's clock below its maximum?

`nvidia-smi -ac` sets application clocks and `nvidia-smi -lgc` locks the clock, for steady measurements or to save
power, and both outlast the user who set them. `sudo nvidia-smi -rac` and `sudo nvidia-smi -rgc` undo them. A lock shows
only under load, which a probe creates.

Source: nvmlDeviceGetApplicationsClock and its default; NVML's clocks event reason 0x2, now and under load.
"""

from gputune.checks._answers import Finding, Measurements, below, each_gpu, not_read, ok, throttle_reasons, warning
from gputune.checks._questions import consumer_or_share
from gputune.checks._remedies import smi
from gputune.checks.throttling import SETTING
from gputune.facts import Facts, Gpu

ASK = "a lock may be deliberate: ask whoever runs the machine first"
FIELDS = ("sm_clock_application_mhz", "sm_clock_application_default_mhz", "sm_clock_max_mhz", "clocks_event_reasons")


@each_gpu()
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    clock, default = gpu.health.sm_clock_application_mhz, gpu.health.sm_clock_application_default_mhz
    measured = throttle_reasons(facts, gpu, measurements)
    if ((measured or 0) | (gpu.health.clocks_event_reasons or 0)) & SETTING:
        return warning("a setting holds its clock below its maximum", smi(gpu, "-rgc", "-rac", note=ASK))
    if below(clock, default):
        message = f"its application clock is set to {clock} MHz; the default is {default} MHz"
        return warning(message, smi(gpu, "-rac", note=ASK))
    good = "its application clock is not below the default, and no lock shows at rest"
    if measured is not None:
        good = f"no setting holds its clock below {gpu.health.sm_clock_max_mhz} MHz"
    return not_read(facts, gpu, *FIELDS, lacking=consumer_or_share) or ok(good)
