"""What gputune's measurements are worth on this GPU: `python tests/gpu/figures.py [NAME...]` measures and prints the
figures.

Each figure is a function that returns what it found, so that `test_measuring.py` holds the same numbers against their
limits.
"""

import gc
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gputune import advice, benches, facts
from gputune.advice import Choice, _training, _training_rows
from gputune.bench_process import Context
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.profile import Profile, load
from gputune.search.combination import DEFAULT, Combination

DEVICE = "cuda:0"
GRID = range(1024, 15 * 1024 + 1, 1024)
ROUNDS = 20


def probe(*options: str, environ: dict[str, str] | None = None) -> tuple[Profile, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.yaml"
        started = time.monotonic()
        command = [sys.executable, "-m", "gputune", "probe", "-o", str(path), *options]
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environ or {})},
        )
        return load(path), time.monotonic() - started


def measured(name: str, budget: Any = "standard", machine: Facts | None = None, **more: Any) -> list[Measurement | Gap]:
    import torch

    torch.zeros(1, device=DEVICE)
    machine = machine or facts.read(Host())
    seconds = benches.load(name).SECONDS["cuda"][budget]
    context = Context(device=DEVICE, facts=machine, seconds=seconds, budget=budget, **more)
    return list(benches.load(name).measure(context))


def rows_of(found: list[Measurement | Gap], **params: Any) -> list[Measurement]:
    rows = [row for row in found if isinstance(row, Measurement)]
    return [row for row in rows if params.items() <= row.params.items()]


def peak() -> dict[str, float]:
    """The shape that matmul_peak finds for bfloat16, timed in turn with the best 20 of all 3375 shapes of a grid."""
    from gputune.benches import matmul_peak
    from gputune.benches._peak_search import Shape, search

    context = Context(device=DEVICE, facts=facts.read(Host()), seconds=7, budget="standard")
    products = matmul_peak._Products(context, "bfloat16")
    started = time.monotonic()
    chosen = search(products.shapes(), products.rate, 4.0, products.allowed)
    search_seconds = time.monotonic() - started
    (burst,) = [row.median for row in rows_of(measured("matmul_peak"), dtype="bfloat16") if row.metric == "burst"]
    shapes = [Shape(*sizes) for sizes in itertools.product(GRID, repeat=3)]
    random.Random(0).shuffle(shapes)
    reference = Shape(4096, 4096, 8192)
    started = time.monotonic()
    scores = {shape: products.rate(shape) / products.rate(reference) for shape in shapes}
    grid_seconds = time.monotonic() - started
    best = sorted(shapes, key=lambda shape: -scores[shape])[:20]
    medians = _in_turn({chosen, *best}, products.rate)
    winner = max(best, key=lambda shape: medians[shape])
    return {
        "search seconds": search_seconds,
        "grid seconds": grid_seconds,
        "burst TFLOP/s": burst,
        "share of the grid's best": medians[chosen] / medians[winner],
        **{f"chosen {one}": getattr(chosen, one) for one in "mnk"},
        **{f"grid's best {one}": getattr(winner, one) for one in "mnk"},
    }


def _in_turn(arms: Iterable[Any], measure: Callable[[Any], float]) -> dict[Any, float]:
    samples: dict[Any, list[float]] = {name: [] for name in arms}
    for number in range(ROUNDS):
        order = list(samples)
        random.Random(number // 2).shuffle(order)
        for name in order if number % 2 else order[::-1]:
            samples[name].append(measure(name))
    return {name: statistics.median(values) for name, values in samples.items()}


def choices_of(profile: Profile) -> dict[str, Choice]:
    """The general choices, and those of the families, named `family.setting`."""
    own = {f"{family}.{name}": one for family, each in profile.families.items() for name, one in each.items()}
    return {**profile.settings, **own}


def families() -> dict[str, dict[str, Any]]:
    """For each reference network the recommended combination beside all that there are, in one run and in turn.

    cuDNN's search is among them in mixed precision only: see `gputune/benches/_training_groups.py`.
    """
    import torch
    import torch._dynamo

    torch._dynamo.config.cache_size_limit = 64
    found = rows_of(measured("training_step", "thorough"))
    return {name: _exhaustively(name, _training.best(found, name)) for name in _training_rows.families(found)}


def _exhaustively(name: str, recommended: Any) -> dict[str, Any]:
    import torch

    from gputune.benches._networks import NETWORKS
    from gputune.benches._training_groups import Trainee, set_flags

    trainees: dict[Any, Any] = {}
    steps: dict[Any, Callable[[], Any]] = {}
    for one in _combinations(NETWORKS[name].images):
        own = one.minus("fused_optimizer", "cudnn_benchmark")
        set_flags(one)
        if own not in trainees:
            trainees[own] = Trainee(name, NETWORKS[name].cuda, DEVICE, own)
        steps[one] = trainees[own].stepper(fused="fused_optimizer" in one)[0]
        for _ in range(2):
            steps[one]()

    def rate(one: Any) -> float:
        set_flags(one)
        return 1 / _seconds(steps[one])

    medians = _in_turn(steps, rate)
    best = max(medians, key=lambda one: medians[one])
    trainees.clear()
    steps.clear()
    gc.collect()
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    return {
        "combinations": len(medians),
        "recommended": str(recommended),
        "best": str(best),
        "share of the best": medians[recommended] / medians[best],
        "times the defaults": medians[recommended] / medians[DEFAULT],
    }


def _combinations(images: bool) -> Iterator[Any]:
    flags = [name for name in _training_rows.FLAGS if images or name in ("fused_optimizer", "compile")]
    choices = itertools.product((False, True), repeat=len(flags))
    for precision, values in itertools.product(_training_rows.PRECISIONS, choices):
        on = {name: True for name, value in zip(flags, values, strict=True) if value}
        one = _training_rows.with_precision(Combination.of(on), precision)
        if "cudnn_benchmark" not in one or one.level == "mixed":
            yield one


def _seconds(run: Callable[[], Any]) -> float:
    """The seconds of one run, timed over at least 15 ms."""
    import torch

    repeats, taken = 1, 0.0
    while taken < 0.015:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(repeats):
            run()
        last.record()
        last.synchronize()
        taken = float(first.elapsed_time(last)) / 1000
        repeats, done = max(repeats + 1, round(repeats * 0.02 / max(taken, 1e-6))), repeats
    return taken / done


LOAD = """
import time, torch
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
print("loading", flush=True)
while True:
    for _ in range(20): x @ x
    torch.cuda.synchronize()
"""


def beside_another() -> dict[str, Any]:
    """What a quick probe reports while a second process loads the GPU."""
    other = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout
        other.stdout.readline()
        profile, _ = probe("--budget", "quick")
    finally:
        other.kill()
        other.wait()
    return {
        one.severity: one.message for one in profile.findings if one.check == "measured_alone" and one.subject != "CPU"
    }


SMALL = """
import json, sys, torch
sys.path.insert(0, sys.argv[1])
torch.cuda.set_per_process_memory_fraction(8 * 2**30 / torch.cuda.get_device_properties(0).total_memory)
from gpu.figures import Gap, measured, rows_of
found = {name: measured(name) for name in sys.argv[2:]}
print(json.dumps({
    name: {
        "rows": sum(not isinstance(row, Gap) for row in rows),
        "gaps": [row.reason for row in rows if isinstance(row, Gap)],
        "batches": sorted({
            "{network} {batch}".format_map(row.params) for row in rows_of(rows) if "batch" in row.params
        }),
    }
    for name, rows in found.items()
}))
"""


def small_card() -> dict[str, Any]:
    """The standard benches of a GPU within 8 GiB."""
    names = ["precision", "matmul_alignment", "matmul_peak", "conv", "attention", "training_step"]
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", SMALL, here, *names]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return result


def old_card() -> dict[str, Any]:
    """The standard benches as a GPU without bfloat16 and TF32 (compute capability 7.5) would be measured."""
    machine = facts.read(Host())
    gpus = tuple(replace(gpu, compute_capability="7.5", tensor_core_dtypes=("float16",)) for gpu in machine.gpus)
    machine = replace(machine, gpus=gpus)
    names = ("precision", "matmul_alignment", "training_step")
    found = {name: rows_of(measured(name, machine=machine)) for name in names}
    rates = {name: [row for row in rows if row.metric == "throughput"] for name, rows in found.items()}
    said = {
        name: sorted({str(row.params.get("dtype", row.params.get("amp_dtype", "float32"))) for row in rows})
        for name, rows in rates.items()
    }
    return {**said, "amp_dtype": _amp(machine, found)}


def _amp(machine: Facts, found: dict[str, list[Measurement]]) -> Any:
    return advice.recommend("amp_dtype", machine, [row for rows in found.values() for row in rows]).value


def budgets() -> dict[str, float]:
    return {budget: round(probe("--budget", budget)[1], 1) for budget in ("quick", "standard")}


FIGURES = {one.__name__: one for one in (budgets, peak, families, beside_another, small_card, old_card)}


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        started = time.monotonic()
        answer = FIGURES[name]()
        print(f"\n{name} ({time.monotonic() - started:.0f} s)")
        for key, value in answer.items():
            print(f"  {key}: {round(value, 4) if isinstance(value, float) else value}", flush=True)
