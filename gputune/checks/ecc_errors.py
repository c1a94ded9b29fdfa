"""Has this GPU's memory had errors that it could not correct?

An uncorrectable ECC error kills the program that hits it, and means that the memory is failing. The count starts when
the driver is loaded. Reset the GPU when no job runs on it, which also replaces the bad memory with spare memory; if
errors come back, have the card replaced.

Source: NVIDIA, GPU Memory Error Management; nvmlDeviceGetTotalEccErrors.
"""

from gputune.checks._answers import Finding, Measurements, counted, each_gpu, error, not_applicable, not_read, ok
from gputune.checks._questions import consumer_or_share
from gputune.checks._remedies import reset
from gputune.facts import Facts, Gpu


@each_gpu("ecc", lacking=consumer_or_share)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    count, ever = gpu.health.ecc_uncorrected, gpu.health.ecc_uncorrected_ever
    in_its_life = "" if ever is None else f" ({ever} in the card's lifetime)"
    if not gpu.health.ecc:
        return not_applicable("ECC is off, so memory errors are not counted")
    if count:
        errors = counted(count, "uncorrectable memory error")
        remedy = reset(gpu, note="if errors come back, replace the card")
        return error(f"{errors} since the driver was loaded{in_its_life}", remedy)
    good = ok(f"no uncorrectable memory errors since the driver was loaded{in_its_life}")
    return not_read(facts, gpu, "ecc_uncorrected", "ecc_uncorrected_ever") or good
