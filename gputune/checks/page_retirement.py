"""Are bad pages of this GPU's memory waiting to be retired?

GPUs before Ampere stop using failing pages at the next reset; until then programs may still be given them. Newer GPUs
remap rows instead.

Source: NVIDIA, Dynamic Page Retirement.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, ok, warning
from gputune.checks._questions import consumer_or_share
from gputune.checks._remedies import reset
from gputune.checks.row_remapping import BEFORE


def _lacking(gpu: Gpu) -> str | None:
    if gpu.architecture is not None and gpu.architecture not in BEFORE:
        return f"{gpu.architecture} remaps rows instead"
    return consumer_or_share(gpu)


@each_gpu("page_retirement_pending", lacking=_lacking)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    if gpu.health.page_retirement_pending:
        message = "bad pages of memory are waiting to be retired at the next reset"
        return warning(message, reset(gpu, note="or reboot it"))
    return ok("no page of memory is waiting to be retired")
