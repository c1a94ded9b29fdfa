"""Was the machine otherwise idle while it was measured?

What others take of a GPU or of the CPUs is missing in the measurements, and changes from moment to moment: the advice may
be wrong. CPUs count as taken where others used more than the budget of this process leaves them. A container may hide the
processes of others on a GPU, so that none seen does not mean none there.

Source: nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetProcessUtilization and /proc/stat, during a probe's measurements.
"""

from gputune.checks._answers import counted, each_gpu, ok, unknown, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements
from gputune.checks._load import conditions, unmeasured

ANOTHER = "wait, or choose another GPU with CUDA_VISIBLE_DEVICES, and probe again"
MOMENTARY = True
NOTICEABLE_PERCENT = 5


def check(facts: Facts, measurements: Measurements) -> Findings:
    yield from each_gpu(facts, lambda gpu: _gpu(facts, gpu, measurements))
    if measurements:
        yield _cpu(facts, measurements)


def _gpu(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    seen = conditions(facts, gpu, measurements, "gpu_processes")
    if not seen:
        return unmeasured(facts, gpu, measurements)
    used = max(conditions(facts, gpu, measurements, "other_sm_percent"), default=0)
    share = f", which used up to {used} % of its SMs" if used else ""
    if max(seen) > 1:
        return warning(f"{counted(max(seen) - 1, 'other process')} on it while it was measured{share}", ANOTHER)
    if used >= NOTICEABLE_PERCENT:
        return warning(f"another process was on it for a while as it was measured{share}", ANOTHER)
    return ok("no other process was seen on it")


def _cpu(facts: Facts, measurements: Measurements) -> Finding:
    cpus, budget = facts.cpu.affinity_count, facts.cpu.budget
    seen = [row.conditions["other_cpus"] for row in measurements if "other_cpus" in row.conditions]
    if not seen:
        return unknown("what others used of the CPUs could not be read", "CPU")
    told = f"others used up to {max(seen):.1f} CPUs of {cpus}"
    if max(seen) - (cpus - budget) > max(0.5, budget / 4):
        return warning(f"{told} while they were measured", "wait until they are idle, and probe again", "CPU")
    return ok(told, "CPU")
