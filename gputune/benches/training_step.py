"""Whole optimizer steps of four reference networks, by precision, memory format, cuDNN search, fused optimizer and torch.compile.

The networks are a multilayer perceptron (PyTorch's mixed-precision recipe), a ResNet-style convnet, a decoder transformer
and an LSTM. Each is measured in two groups: every precision in both memory formats, and, on the best of these, every
combination of the other options. In the thorough budget an accuracy guard compares final losses, torch.compile takes
part, the MLP is measured at other batches (which show where the host is the limit), and forward passes under
inference_mode too.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from gputune.bench_process import Context
from gputune.benches import torch_missing
from gputune.benches._errors import out_of_memory
from gputune.benches._guard import final_losses
from gputune.benches._networks import NETWORKS, Size
from gputune.benches._steps import Trainee, set_flags
from gputune.benches._timing import Arm, against_first, interleave, measurement, or_gap, ranked
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement, rounded
from gputune.settings import _training
from gputune.settings._training import BENCH, MIXED, Combination

SECONDS = {
    "cuda": {"quick": 0, "standard": 23, "thorough": 240},
    "cpu": {"quick": 0, "standard": 13, "thorough": 120},
}
RANK = 3

SHARES = {"mlp": 0.8, "convnet": 3.0, "transformer": 2.5, "recurrent": 2.0}
"""Of the seconds. The convnet's includes cuDNN's search, which took 0.8 to 5.2 s on one and the same model of a machine: in
the standard budget it comes last, so that no other network has to do with less.
"""
GUARD_SHARE = 0.5
"""Beside what the groups take: the guard's trainings are as long as they are, or are not begun."""
CACHE = "TORCHINDUCTOR_CACHE_DIR"
SMALLEST_BATCH = 2
OTHER_BATCHES = (128, 256, 513)

Found = Measurement | Gap


def needs(facts: Facts, device: str) -> str | None:
    return torch_missing(facts)


def measure(context: Context) -> Iterator[Found]:
    names = list(NETWORKS)
    if context.budget != "thorough":
        names = [name for name in names if name != "recurrent"]
        names.sort(key=lambda name: NETWORKS[name].images)
    deadline = time.monotonic() + context.seconds
    importlib.import_module("torch._dynamo")  # seconds, which the first optimizer would take otherwise
    with _without_compiled_before():
        for number, name in enumerate(names):
            left = deadline - time.monotonic()
            share = SHARES[name] / sum(SHARES[one] for one in names[number:])
            yield from _network(context, name, max(0.0, left) * share)


def _network(context: Context, name: str, seconds: float) -> Iterator[Found]:
    """All rows of a network, as they are had: what fails later does not take along what was measured before."""
    context.say(f"{name}: precision")
    size, found = _at_a_batch_that_fits(context, name, seconds * 0.45)
    yield from found
    rows = [row for row in found if isinstance(row, Measurement)]
    if context.budget == "thorough" and context.cuda and rows:
        for row in _kept(context, name, final_losses(context, name, size, seconds * GUARD_SHARE)):
            rows += [row] if isinstance(row, Measurement) else []
            yield row
    best = _training.first_best(rows, name)
    if best is None:
        return
    context.say(f"{name}: options")
    yield from _kept(context, name, _options(context, name, size, best, seconds * 0.25))
    if context.budget == "thorough":
        yield from _kept(context, name, _forward(context, name, size, best, seconds * 0.1))
        if name == "mlp" and context.cuda:
            yield from _kept(context, name, _batches(context, size, seconds * 0.1))


def _at_a_batch_that_fits(context: Context, name: str, seconds: float) -> tuple[Size, list[Found]]:
    """The first group, at the reference batch or, where memory does not suffice, at the largest half of it that fits."""
    size = NETWORKS[name].cuda if context.cuda else NETWORKS[name].cpu
    while True:
        try:
            found = _precisions(context, name, size, seconds)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            lacking = str(error).split(". ")[0]
        else:
            _release(context)
            return size, found
        _release(context)
        if size.batch // 2 < SMALLEST_BATCH:
            return size, [Gap(fact=_fact(name), reason=f"also a batch of {size.batch} did not fit: {lacking}")]
        size = replace(size, batch=size.batch // 2)
        context.say(f"{name}: a batch of {size.batch}, since more does not fit")


def _kept(context: Context, name: str, stage: Iterable[Found]) -> Iterator[Found]:
    """A later group's rows; memory that does not suffice for it is a Gap."""
    try:
        yield from stage
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        yield Gap(fact=_fact(name), reason=str(error).split(". ")[0])
    _release(context)


def _fact(name: str) -> str:
    return f"bench.training_step.{name}"


@contextmanager
def _without_compiled_before() -> Iterator[None]:
    """An empty cache for torch.compile, so that the time it takes is that of compiling."""
    before = os.environ.get(CACHE)
    with tempfile.TemporaryDirectory(prefix="gputune-", ignore_cleanup_errors=True) as folder:
        os.environ[CACHE] = folder
        try:
            yield
        finally:
            os.environ.pop(CACHE)
            if before is not None:
                os.environ[CACHE] = before


def _release(context: Context) -> None:
    """Give back what the last group held: models and their gradients refer to each other in circles."""
    import torch

    gc.collect()
    torch._dynamo.reset()
    if context.cuda:
        torch.cuda.empty_cache()


def _precisions(context: Context, name: str, size: Size, seconds: float) -> list[Found]:
    """Every precision in both formats, with the peak memory of each."""
    formats = (False, True) if NETWORKS[name].images else (False,)
    arms, memory = [], []
    for precision, last in itertools.product(context.dtypes, formats):
        combination = Combination(precision=precision, channels_last=last)
        before = _allocated(context)
        trainee = Trainee(NETWORKS[name], size, context.device, combination)
        arm = _arm(trainee, combination, "precision", trainee.stepper(fused=False)[0])
        arm.before()
        arm.run()  # makes the optimizer's state and the libraries' workspaces, which are there beside what a step needs
        if context.cuda:
            memory.append(_single(context, arm, "peak_memory", "MiB", (_peak_of(arm) - before) / 2**20))
        arms.append(arm)
    row = partial(measurement, context, BENCH, "samples/s")
    return [*memory, *or_gap(interleave(context, ranked(arms), seconds, row), _fact(name), "its steps")]


def _allocated(context: Context) -> int:
    if not context.cuda:
        return 0
    import torch

    torch.zeros(64, 64, device=context.device) @ torch.zeros(
        64, 64, device=context.device
    )  # cuBLAS takes its workspace
    return int(torch.cuda.memory_allocated(context.device))


def _peak_of(arm: Arm) -> int:
    """The most that is allocated while a step runs."""
    import torch

    torch.cuda.reset_peak_memory_stats()
    arm.run()
    return int(torch.cuda.max_memory_allocated())


def _options(context: Context, name: str, size: Size, best: Combination, seconds: float) -> Iterator[Found]:
    """Every combination of the options that there are here, on the best precision and format."""
    compilable = context.budget == "thorough"
    searchable = context.cuda and NETWORKS[name].images and best.precision in MIXED
    arms: list[Arm] = []
    for compiled in (False, True) if compilable else (False,):
        trainee: Trainee | None = None
        for search, fused in itertools.product((False, True) if searchable else (False,), (False, True)):
            combination = replace(best, compiled=compiled, cudnn_benchmark=search, fused=fused)
            try:
                trainee = trainee or Trainee(NETWORKS[name], size, context.device, replace(best, compiled=compiled))
                arm, taken = _started(trainee, combination)
            except Exception as error:  # a compiler may fail with anything
                if out_of_memory(error) or not (compiled or fused):
                    raise
                yield Gap(fact=_fact(name), reason=_refused(combination, error))
                continue
            arms.append(arm)
            if (compiled or search) and not fused and not (compiled and search):
                yield _single(context, arm, "compile_time" if compiled else "search_time", "s", taken)
    rows = interleave(context, ranked(arms), seconds, partial(measurement, context, BENCH, "samples/s"))
    yield from or_gap(rows, _fact(name), "its options")


def _started(trainee: Trainee, combination: Combination) -> tuple[Arm, float]:
    """An arm whose first step is done, and the seconds that it took: those of compiling or of cuDNN's search."""
    arm = _arm(trainee, combination, "options", trainee.stepper(fused=combination.fused)[0])
    arm.before()
    start = time.monotonic()
    float(arm.run().detach())
    return arm, time.monotonic() - start


def _refused(combination: Combination, error: Exception) -> str:
    what = "torch.compile" if combination.compiled else "the fused optimizer" if combination.fused else "the step"
    return f"{what} failed: {' '.join(str(error).split())[:200]}"


def _forward(context: Context, name: str, size: Size, best: Combination, seconds: float) -> list[Measurement]:
    arms = []
    for precision in context.dtypes:
        combination = Combination(precision=precision, channels_last=best.channels_last)
        trainee = Trainee(NETWORKS[name], size, context.device, combination)
        trainee.model.eval()
        arms.append(_arm(trainee, combination, "inference", trainee.inference))
    return interleave(context, against_first(arms), seconds, partial(measurement, context, BENCH, "samples/s"))


def _batches(context: Context, size: Size, seconds: float) -> list[Measurement]:
    """The MLP's other batches, each precision against FP32 at the same batch."""
    arms: list[Arm] = []
    for batch in OTHER_BATCHES:
        here: list[Arm] = []
        for precision in (one for one in context.dtypes if one != "float16"):
            combination = Combination(precision=precision)
            trainee = Trainee(NETWORKS["mlp"], replace(size, batch=batch), context.device, combination)
            here.append(_arm(trainee, combination, "batch", trainee.stepper(fused=False)[0]))
        arms += against_first(here)
    return interleave(context, arms, seconds, partial(measurement, context, BENCH, "samples/s"))


def _arm(trainee: Trainee, combination: Combination, stage: str, run: Any) -> Arm:
    name = next(name for name, network in NETWORKS.items() if network is trainee.network)
    return Arm(
        params={"network": name, "batch": trainee.size.batch, "stage": stage, **combination.params},
        run=run,
        work=trainee.size.batch,
        before=partial(set_flags, combination),
    )


def _single(context: Context, arm: Arm, metric: str, unit: str, value: float) -> Measurement:
    return Measurement(
        bench=BENCH, metric=metric, unit=unit, samples=(rounded(value),), params=arm.params, device=context.device
    )
