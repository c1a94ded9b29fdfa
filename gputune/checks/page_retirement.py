"""Does this GPU wait to retire bad pages of memory?

GPUs before Ampere take failing pages out of use, at the next reset: until then programs still get them. Newer ones remap
rows instead.

Source: NVIDIA, Dynamic Page Retirement.
"""

from gputune.checks._answers import each_gpu, ok, smi, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, consumer_or_share
from gputune.checks.row_remapping import BEFORE


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, _of, "page_retirement_pending", lacking=_lacking)


def _of(gpu: Gpu) -> Finding:
    if gpu.health.page_retirement_pending:
        message = "bad pages of memory wait to be taken out of use at the next reset"
        return warning(message, f"stop its jobs; {smi(gpu, '--gpu-reset')}; or reboot it")
    return ok("no page of memory waits to be taken out of use")


def _lacking(gpu: Gpu) -> str | None:
    if gpu.architecture is not None and gpu.architecture not in BEFORE:
        return f"{gpu.architecture} remaps rows instead"
    return consumer_or_share(gpu)
