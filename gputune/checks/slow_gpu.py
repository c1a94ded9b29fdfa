"""Is one GPU of this node slower than the others?

Training on several GPUs runs at the pace of the slowest. Identical cards of a cluster differ by 8 % on average, so one
is called slow only if it is at least 10 % below the node's median in steady matmul or in memory bandwidth, and by more
than five scaled median absolute deviations, in two runs. `gputune probe --device all` measures all GPUs at the same
time. With fewer than three GPUs there is no telling which one is the exception.

Source: "Not All GPUs Are Created Equal" (SC'22) for what healthy cards differ by; 1.4826 makes a median absolute
deviation an estimate of the standard deviation.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, counted, judge_gpus, not_applicable, ok, unknown, warning
from gputune.checks._remedies import address_of, typed
from gputune.facts import Facts, Gpu
from gputune.measurement import Measurement

SHORTFALL = 0.10
SCALED_MADS = 5
SCALE = 1.4826
FEWEST = 3
NAMES = {"matmul": "steady matmul", "bandwidth": "memory bandwidth"}
LOOK = "nvidia-smi -i {gpu} -q -d PERFORMANCE,TEMPERATURE,POWER"


@dataclass(frozen=True, slots=True)
class Run:
    """One metric of all devices, measured at the same time."""

    metric: str
    rows: Mapping[str, Measurement]

    @property
    def median(self) -> float:
        return median(row.median for row in self.rows.values())

    def share(self, device: str) -> float:
        return self.rows[device].median / self.median

    def slow(self) -> set[str]:
        if len(self.rows) < FEWEST:
            return set()
        below = {device: 1 - self.share(device) for device in self.rows}
        spread = SCALE * median(abs(shortfall) for shortfall in below.values())
        return {device for device, one in below.items() if one >= SHORTFALL and one > SCALED_MADS * spread}


def runs(measurements: Sequence[Measurement]) -> list[list[Run]]:
    """For each run, in order, the metrics that were measured in it."""
    by_run: dict[int, dict[str, dict[str, Measurement]]] = {}
    for row in measurements:
        if row.bench == "side_by_side" and row.metric in NAMES:
            by_run.setdefault(int(row.params.get("run", 1)), {}).setdefault(row.metric, {})[row.device] = row
    return [[Run(metric, rows) for metric, rows in by_run[number].items()] for number in sorted(by_run)]


def suspects(measurements: Sequence[Measurement]) -> set[str]:
    """The devices that are slow in any of the runs, so that another run is needed to confirm it."""
    return {device for run in runs(measurements) for one in run for device in one.slow()}


def check(facts: Facts, measurements: Measurements) -> Findings:
    found = runs(measurements)
    devices = {device for run in found for one in run for device in one.rows}
    return judge_gpus(facts, lambda gpu: _judge(facts, gpu, found, devices))


def _judge(facts: Facts, gpu: Gpu, found: Sequence[Sequence[Run]], devices: set[str]) -> Finding:
    device = f"cuda:{gpu.torch_index}"
    if device not in devices:
        return _unmeasured(facts, gpu, devices)
    last = {one.metric: one for run in found for one in run if device in one.rows}
    said = "; ".join(_said(one, device) for one in last.values())
    if len(devices) < FEWEST:
        return not_applicable(f"{said}: with {counted(len(devices), 'GPU')} there is no telling which is slow")
    times = Counter(one.metric for run in found for one in run if device in one.slow())
    if slow := [metric for metric in NAMES if times[metric] >= 2]:
        note = "shows what limits it; until then leave it out of CUDA_VISIBLE_DEVICES"
        remedy = typed(LOOK.format(gpu=address_of(gpu)), note=note)
        return warning(_slow(slow, found, device, len(devices)), remedy)
    if times and any(device not in one.rows for run in found for one in run):
        return unknown(f"{said}; slow in one run, and not measured in another")
    once = " and ".join(NAMES[metric] for metric in times)
    return ok(said + (f"; {once} slow in one run and not in another" if once else ""))


def _unmeasured(facts: Facts, gpu: Gpu, devices: set[str]) -> Finding:
    if not devices and sum(other.name == gpu.name for other in facts.gpus) < FEWEST:
        return not_applicable(f"there are fewer than {FEWEST} GPUs of its kind to compare")
    if not devices:
        return not_applicable("only a load on all GPUs at once shows it: gputune probe --device all measures under one")
    alike = any((other := facts.device_gpu(one)) and other.name == gpu.name for one in devices)
    seen = gpu.torch_index is not None and alike
    return (unknown if seen else not_applicable)("it was not measured together with the others")


def _said(run: Run, device: str) -> str:
    row = run.rows[device]
    return f"{NAMES[run.metric]} {row.median:.4g} {row.unit}, {run.share(device):.0%} of the median"


def _slow(metrics: Sequence[str], found: Sequence[Sequence[Run]], device: str, count: int) -> str:
    parts = []
    for run in (one for one in found[-1] if one.metric in metrics):
        row = run.rows[device]
        shares = [one.share(device) for each in found for one in each if one.metric == run.metric]
        below = " and ".join(f"{1 - share:.0%}" for share in shares)
        parts.append(
            f"{NAMES[run.metric]} {below} below the median of {count} GPUs ({row.median:.4g} to {run.median:.4g} "
            f"{row.unit}{_conditions(run, device)})"
        )
    return "; ".join(parts)


def _conditions(run: Run, device: str) -> str:
    """The GPU's clock, power and processes during the run against the others' median, which usually show the cause."""
    said = []
    for name, unit in (("sm_clock_mhz", "MHz"), ("power_watts", "W")):
        mine = run.rows[device].conditions.get(name)
        others = [row.conditions[name] for row in run.rows.values() if name in row.conditions]
        if mine is not None:
            said.append(f"{mine:.0f} to {median(others):.0f} {unit}")
    if (users := run.rows[device].conditions.get("gpu_processes", 1)) > 1:
        said.append(f"{users:.0f} processes on it")
    return f"; {', '.join(said)}" if said else ""
