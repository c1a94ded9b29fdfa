"""Are bad rows of this GPU's memory waiting to be replaced, or are there no spare rows left?

GPUs from Ampere on replace failing rows with spare ones at the next reset; reset soon, before more rows fail. If no
spare row is left, the replacement fails, and the card itself has to be replaced.

Source: NVIDIA, GPU Memory Error Management, Row-remapping.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, error, not_read, ok, warning
from gputune.checks._questions import consumer_or_share
from gputune.checks._remedies import reset

BEFORE = ("Kepler", "Maxwell", "Pascal", "Volta", "Turing")


@each_gpu()
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    if gpu.health.row_remap_failed:
        return error("a bad row of memory could not be replaced", "take the card out of service and have it replaced")
    if gpu.health.row_remap_pending:
        message = "a bad row of memory is waiting to be replaced at the next reset"
        return warning(message, reset(gpu, note="or reboot it"))
    good = ok("no row of memory is waiting to be replaced")
    return not_read(facts, gpu, "row_remap_failed", "row_remap_pending", lacking=_lacking) or good


def _lacking(gpu: Gpu) -> str | None:
    if gpu.architecture in BEFORE:
        return f"{gpu.architecture} retires pages instead"
    return "a GPU divided by MIG does not report it" if gpu.health.mig else consumer_or_share(gpu)
