"""Is ECC on, and does it stay so after the next reset?

Data-centre cards are shipped with ECC, which corrects single-bit errors and reports others. Without it an error in
memory changes a result, or kills a program, and nobody learns of it. On cards with GDDR memory ECC costs some memory
and bandwidth, for which some turn it off. A change takes effect with the next reset or reboot.

Source: NVIDIA, nvidia-smi, --ecc-config; nvmlDeviceGetEccMode, nvmlDeviceGetDefaultEccMode.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, not_applicable, ok, warning
from gputune.checks._questions import consumer_or_share, data_centre
from gputune.checks._remedies import address_of, reset, smi

ON_PURPOSE = "it may be off on purpose, for GDDR memory's bandwidth"


def _lacking(gpu: Gpu) -> str | None:
    return consumer_or_share(gpu) or (None if data_centre(gpu) else f"{gpu.name} has no ECC")


@each_gpu("ecc", "ecc_pending", lacking=_lacking)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    now, then = gpu.health.ecc, gpu.health.ecc_pending
    if now and then:
        return ok("ECC is on")
    if now:
        note = f"keeps it on; {ON_PURPOSE}"
        return warning("ECC is on, and off after the next reset or reboot", smi(gpu, "-e 1", note=note))
    if then:
        return warning("ECC is off, and on only after the next reset or reboot", reset(gpu))
    if not data_centre(gpu):
        return not_applicable(f"ECC is off, as usual on a card that is not made for data centres ({gpu.name})")
    if gpu.health.ecc_default is False:
        return not_applicable(f"ECC is off, as this card was shipped ({gpu.name})")
    remedy = f"sudo nvidia-smi -i {address_of(gpu)} -e 1; {reset(gpu, note=ON_PURPOSE)}"
    return warning("ECC is off: errors in memory are neither corrected nor reported", remedy)
