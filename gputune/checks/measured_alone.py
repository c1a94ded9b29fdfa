"""Was the machine otherwise idle while it was measured?

Other processes that use the GPU or the CPUs distort the measurements, by an amount that changes from moment to moment,
so the advice may be wrong. For the CPUs this counts if others used more than this process's budget leaves them. A
container may hide the processes of others on a GPU, so that seeing none does not prove that there are none.

Source: nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetProcessUtilization and /proc/stat, during a probe.
"""

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, conditions, judge_gpus, ok, unknown, unmeasured, warning
from gputune.facts import Facts, Gpu
from gputune.facts.busy import is_busy
from gputune.resources.printable import counted

ANOTHER = "wait, or take another of the GPUs that are yours with CUDA_VISIBLE_DEVICES, and probe again"
MOMENTARY = True
NOTICEABLE_PERCENT = 5


def check(facts: Facts, measurements: Measurements) -> Findings:
    yield from judge_gpus(facts, lambda gpu: _gpu(facts, gpu, measurements))
    if measurements:
        yield _cpu(facts, measurements)


def _gpu(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    seen = conditions(facts, gpu, measurements, "gpu_processes")
    if not seen:
        return unmeasured(facts, gpu, measurements)
    used = max(conditions(facts, gpu, measurements, "other_sm_percent"), default=0)
    share = f", which used up to {used} % of its SMs" if used else ""
    if max(seen) > 1:
        return warning(f"{counted(max(seen) - 1, 'other process')} on it during the measurements{share}", ANOTHER)
    if used >= NOTICEABLE_PERCENT:
        return warning(f"another process used it for part of the measurements{share}", ANOTHER)
    return ok("no other process was seen on it")


def _cpu(facts: Facts, measurements: Measurements) -> Finding:
    seen = [row.conditions["other_cpus"] for row in measurements if "other_cpus" in row.conditions]
    if not seen:
        return unknown("how much of the CPUs others used could not be read", "CPU")
    usage = f"other processes used up to {max(seen):.1f} of {facts.cpu.affinity_count} CPUs"
    if is_busy(facts.cpu, max(seen)):
        return warning(f"{usage} during the measurements", "wait until they are idle, and probe again", "CPU")
    return ok(usage, "CPU")
