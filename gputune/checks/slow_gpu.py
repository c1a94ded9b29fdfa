"""Is one GPU of this node slower than its neighbours?

A training of many GPUs goes at the pace of the slowest. Identical cards differ by up to 8 %, so one is called slow only
where it stays at least 10 % below the median of the node, in steady matmul or in the bandwidth of its memory, and by more
than five scaled median absolute deviations, and does so again in a second run. `gputune probe --device all` measures it,
all GPUs at the same time. Fewer than three GPUs cannot tell which of them is the odd one.

Source: "Not All GPUs Are Created Equal" (SC'22) for what healthy cards differ by; 1.4826 makes a median absolute
deviation an estimate of the standard deviation.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gputune.checks._answers import counted, each_gpu, not_applicable, ok, unknown, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurement, Measurements

SHORTFALL = 0.10
SCALED_MADS = 5
SCALE = 1.4826
FEWEST = 3
NAMES = {"matmul": "steady matmul", "bandwidth": "memory bandwidth"}
LOOK = "see what holds it: nvidia-smi -i {gpu} -q -d PERFORMANCE,TEMPERATURE,POWER; until then leave it out of CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Run:
    """One metric of all devices, measured at the same time."""

    metric: str
    rows: Mapping[str, Measurement]

    @property
    def median(self) -> float:
        return median(row.median for row in self.rows.values())

    def share(self, device: str) -> float:
        """Of the node's median."""
        return self.rows[device].median / self.median

    def slow(self) -> set[str]:
        """The devices that are too far below the median."""
        if len(self.rows) < FEWEST:
            return set()
        below = {device: 1 - self.share(device) for device in self.rows}
        spread = SCALE * median(abs(shortfall) for shortfall in below.values())
        return {device for device, one in below.items() if one >= SHORTFALL and one > SCALED_MADS * spread}


def runs(measurements: Sequence[Measurement]) -> list[list[Run]]:
    """By run, in their order, the metrics that were measured in it."""
    found: dict[int, dict[str, dict[str, Measurement]]] = {}
    for row in measurements:
        if row.bench == "side_by_side" and row.metric in NAMES:
            found.setdefault(int(row.params.get("run", 1)), {}).setdefault(row.metric, {})[row.device] = row
    return [[Run(metric, rows) for metric, rows in found[number].items()] for number in sorted(found)]


def suspects(measurements: Sequence[Measurement]) -> set[str]:
    """The devices that are slow in one of the runs, which calls for another."""
    return {device for run in runs(measurements) for one in run for device in one.slow()}


def check(facts: Facts, measurements: Measurements) -> Findings:
    found = runs(measurements)
    devices = {device for run in found for one in run for device in one.rows}
    return each_gpu(facts, lambda gpu: _of(facts, gpu, found, devices))


def _of(facts: Facts, gpu: Gpu, found: Sequence[Sequence[Run]], devices: set[str]) -> Finding:
    device = f"cuda:{gpu.torch_index}"
    if device not in devices:
        return _unmeasured(facts, gpu, devices)
    said = "; ".join(_said(one, device) for one in _last(found, device).values())
    if len(devices) < FEWEST:
        return not_applicable(f"{said}: {counted(len(devices), 'GPU')} cannot tell which is slow")
    times = Counter(one.metric for run in found for one in run if device in one.slow())
    if slow := [metric for metric in NAMES if times[metric] >= 2]:
        remedy = LOOK.format(gpu=gpu.pci_bus_id or gpu.uuid or gpu.index)
        return warning(_slow(slow, found, device, len(devices)), remedy)
    if times and any(device not in one.rows for run in found for one in run):
        return unknown(f"{said}; slow in one run, and not measured in another")
    once = " and ".join(NAMES[metric] for metric in times)
    return ok(said + (f"; {once} slow in one run and not in another" if once else ""))


def _unmeasured(facts: Facts, gpu: Gpu, devices: set[str]) -> Finding:
    if not devices and sum(other.name == gpu.name for other in facts.gpus) < FEWEST:
        return not_applicable(f"fewer than {FEWEST} GPUs of its kind are here to be held against")
    if not devices:
        return not_applicable("only a load on all GPUs at once tells: gputune probe --device all measures under one")
    alike = any((other := facts.device_gpu(one)) and other.name == gpu.name for one in devices)
    seen = gpu.torch_index is not None and alike
    return (unknown if seen else not_applicable)("it was not measured beside the others")


def _last(found: Sequence[Sequence[Run]], device: str) -> dict[str, Run]:
    """By metric the last run in which this device was measured."""
    return {one.metric: one for run in found for one in run if device in one.rows}


def _said(run: Run, device: str) -> str:
    row = run.rows[device]
    return f"{NAMES[run.metric]} {row.median:.4g} {row.unit}, {run.share(device):.0%} of the median"


def _slow(metrics: Sequence[str], found: Sequence[Sequence[Run]], device: str, count: int) -> str:
    told = []
    for run in (one for one in found[-1] if one.metric in metrics):
        row = run.rows[device]
        shares = [one.share(device) for each in found for one in each if one.metric == run.metric]
        below = " and ".join(f"{1 - share:.0%}" for share in shares)
        told.append(
            f"{NAMES[run.metric]} {below} below the median of {count} GPUs ({row.median:.4g} to {run.median:.4g} "
            f"{row.unit}{_conditions(run, device)})"
        )
    return "; ".join(told)


def _conditions(run: Run, device: str) -> str:
    """What the GPU did meanwhile, beside the others' median: the cause, mostly."""
    said = []
    for name, unit in (("sm_clock_mhz", "MHz"), ("power_watts", "W")):
        mine = run.rows[device].conditions.get(name)
        others = [row.conditions[name] for row in run.rows.values() if name in row.conditions]
        if mine is not None:
            said.append(f"{mine:.0f} to {median(others):.0f} {unit}")
    if (users := run.rows[device].conditions.get("gpu_processes", 1)) > 1:
        said.append(f"{users:.0f} processes on it")
    return f"; {', '.join(said)}" if said else ""
