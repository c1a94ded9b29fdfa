"""Whole optimizer steps of four reference networks: precision, memory format, cuDNN search, fused optimizer, compile.

The networks are a multilayer perceptron (PyTorch's mixed-precision recipe), a ResNet-style convnet, a decoder
transformer and an LSTM. Each is measured in two groups: every precision in both memory formats, and, on the best of
these, every combination of the other options. In the thorough budget an accuracy guard compares final losses,
torch.compile takes part, the MLP is measured at other batches (which show where the host is the limit), and forward
passes under inference_mode too.
"""

import gc
import itertools
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from gputune.bench_process import Context
from gputune.benches._errors import first_sentence, one_line, out_of_memory, synchronize
from gputune.benches._guard import final_losses
from gputune.benches._networks import NETWORKS, Size
from gputune.benches._steps import Trainee, set_flags
from gputune.benches._threads import free_cpus, own_threads
from gputune.benches._timing import Arm, Metric, interleave, or_gap, time_of
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.rounds import against_first, ranked
from gputune.settings import _training
from gputune.settings._training_rows import BENCH, MIXED, Combination

SECONDS = {"cuda": {"standard": 20, "thorough": 240}, "cpu": {"standard": 13, "thorough": 120}}
RANK = 3
IMPORTS = ("torch._dynamo",)
"""Every optimizer of torch imports it with its first step."""

SHARES = {"mlp": 1.4, "convnet": 3.0, "transformer": 2.3, "recurrent": 2.0}
"""How the seconds are divided. The convnet's share includes cuDNN's search, which took 0.8 to 5.2 s on machines of
one model: in the standard budget the convnet comes last, so that its search takes no time from another network.
"""
PRECISIONS_SHARE, OPTIONS_SHARE = 0.45, 0.3
"""The parts of a network's seconds in which its two groups are measured; the rest goes into making them ready."""
GUARD_SHARE = 0.5
"""The accuracy guard's part of a network's seconds. Its trainings cannot be shortened: they run whole or not at all."""
CACHE = "TORCHINDUCTOR_CACHE_DIR"
SMALLEST_BATCH = 2
OTHER_BATCHES = (128, 256, 513)
STEPS = Metric(BENCH, "samples/s")
PEAK_MEMORY = Metric(BENCH, "MiB", "peak_memory")

Found = Measurement | Gap


def measure(context: Context) -> Iterator[Found]:
    names = list(NETWORKS)
    if context.budget != "thorough":
        names = sorted((name for name in names if name != "recurrent"), key=lambda name: NETWORKS[name].images)
    with nullcontext() if context.cuda else own_threads(free_cpus(context.facts.cpu, Host())):
        yield from _networks(context, names, time.monotonic() + context.seconds)


def _networks(context: Context, names: Sequence[str], deadline: float) -> Iterator[Found]:
    with _empty_compile_cache():
        for number, name in enumerate(names):
            left = deadline - time.monotonic()
            share = SHARES[name] / sum(SHARES[later] for later in names[number:])
            yield from _network(context, name, max(0.0, left) * share)


def _network(context: Context, name: str, seconds: float) -> Iterator[Found]:
    """A network's rows, each as soon as it is measured, so that a later failure loses none of them."""
    context.say(f"{name}: precision")
    size, found = _at_a_batch_that_fits(context, name, seconds * PRECISIONS_SHARE)
    yield from found
    rows = [row for row in found if isinstance(row, Measurement)]
    precisions = list(dict.fromkeys(str(row.params["precision"]) for row in rows))
    if context.budget == "thorough" and context.cuda and rows:
        for row in _kept(context, name, final_losses(context, name, size, precisions, seconds * GUARD_SHARE)):
            rows += [row] if isinstance(row, Measurement) else []
            yield row
    best = _training.first_best(rows, name)
    if best is None:
        return
    context.say(f"{name}: options")
    yield from _kept(context, name, _options(context, name, size, best, seconds * OPTIONS_SHARE))
    if context.budget == "thorough":
        forward = [Combination(precision=one, channels_last=best.channels_last) for one in precisions]
        yield from _kept(context, name, _forward(context, name, size, forward, seconds * 0.1))
        if name == "mlp" and context.cuda:
            yield from _kept(context, name, _batches(context, size, precisions, seconds * 0.1))


def _at_a_batch_that_fits(context: Context, name: str, seconds: float) -> tuple[Size, list[Found]]:
    """The first group, and its size: the reference batch, halved until it fits the memory."""
    size = NETWORKS[name].cuda if context.cuda else NETWORKS[name].cpu
    while True:
        try:
            found = _precisions(context, name, size, seconds)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            shortage = first_sentence(error)
        else:
            _release(context)
            return size, found
        _release(context)
        if size.batch // 2 < SMALLEST_BATCH:
            return size, [Gap(fact=_fact(name), reason=f"even a batch of {size.batch} did not fit: {shortage}")]
        size = replace(size, batch=size.batch // 2)
        context.say(f"{name}: a batch of {size.batch}, since more does not fit")


def _kept(context: Context, name: str, stage: Iterable[Found]) -> Iterator[Found]:
    """A later group's rows; memory that does not suffice for it is a Gap."""
    try:
        yield from stage
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        yield Gap(fact=_fact(name), reason=first_sentence(error))
    _release(context)


def _fact(name: str) -> str:
    return f"bench.training_step.{name}"


@contextmanager
def _empty_compile_cache() -> Iterator[None]:
    """An empty cache for torch.compile, so that its time is measured and not that of reading a cache."""
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
    """Free the memory of the last group, whose models and gradients are in reference cycles."""
    import torch

    gc.collect()
    torch._dynamo.reset()
    if context.cuda:
        torch.cuda.empty_cache()


def _precisions(context: Context, name: str, size: Size, seconds: float) -> list[Found]:
    """Every precision in both formats, with the peak memory of each. Mixed precision in which no step runs is a Gap, as
    are steps of which not even one each fits into the seconds.
    """
    formats = (False, True) if NETWORKS[name].images else (False,)
    planned = list(itertools.product(context.dtypes, formats))
    what = f"the {name}'s steps"
    arms: list[Arm] = []
    found: list[Found] = []
    for precision, last in planned:
        combination = Combination(precision=precision, channels_last=last)
        before = _allocated_bytes(context)
        trainee = Trainee(NETWORKS[name], size, context.device, combination)
        try:
            arm, _ = _started(trainee, combination, "precision")
        except RuntimeError as error:
            if out_of_memory(error) or precision not in MIXED:
                raise
            synchronize(context)
            del trainee  # its memory is not to be free only while the next one's is measured
            gc.collect()
            found.append(Gap(fact=_fact(name), reason=f"a step in {precision} failed: {one_line(error)}"))
            continue
        if not arms and time_of(context, arm.run, 1) * len(planned) > seconds:
            return [*found, *or_gap([], _fact(name), what)]
        if context.cuda:
            found.append(PEAK_MEMORY.row(context, [(_peak_bytes(context, arm) - before) / 2**20], arm.params))
        arms.append(arm)
    return [*found, *or_gap(interleave(context, ranked(arms), seconds, STEPS), _fact(name), what)]


def _allocated_bytes(context: Context) -> int:
    """Bytes allocated on a GPU, with cuBLAS's workspace; 0 on a CPU."""
    if not context.cuda:
        return 0
    import torch

    small = torch.zeros(64, 64, device=context.device)
    small @ small  # cuBLAS takes its workspace
    return int(torch.cuda.memory_allocated(context.device))


def _peak_bytes(context: Context, arm: Arm) -> int:
    """The most that is allocated while a step runs."""
    _forget_peak(context)
    arm.run()
    return _peak(context)


def _forget_peak(context: Context) -> None:
    import torch

    if context.cuda:
        torch.cuda.reset_peak_memory_stats()


def _peak(context: Context) -> int:
    """The most bytes that were allocated on the GPU since the peak was forgotten."""
    import torch

    return int(torch.cuda.max_memory_allocated())


def _options(context: Context, name: str, size: Size, best: Combination, seconds: float) -> Iterator[Found]:
    """Every combination of the options that this device and budget have, on the best precision and format."""
    compilable = context.budget == "thorough"
    searchable = context.cuda and NETWORKS[name].images and best.precision in MIXED
    arms: list[Arm] = []
    before = _allocated_bytes(context)
    for compiled in (False, True) if compilable else (False,):
        trainee: Trainee | None = None
        for search, fused in itertools.product((False, True) if searchable else (False,), (False, True)):
            combination = replace(best, compiled=compiled, cudnn_benchmark=search, fused=fused)
            try:
                trainee = trainee or Trainee(NETWORKS[name], size, context.device, replace(best, compiled=compiled))
                _forget_peak(context)
                arm, taken = _started(trainee, combination, "options")
            except Exception as error:  # a compiler may fail with anything
                if out_of_memory(error) or not (compiled or fused):
                    raise
                yield Gap(fact=_fact(name), reason=_refused(combination, error))
                continue
            arms.append(arm)
            if searchable and not fused and not compiled:  # the first step, in which the search takes its memory
                yield PEAK_MEMORY.row(context, [(_peak(context) - before) / 2**20], arm.params)
            if (compiled or search) and not fused and not (compiled and search):
                metric = Metric(BENCH, "s", "compile_time" if compiled else "search_time")
                yield metric.row(context, [taken], arm.params)
    yield from or_gap(interleave(context, ranked(arms), seconds, STEPS), _fact(name), f"the {name}'s options")


def _started(trainee: Trainee, combination: Combination, stage: str) -> tuple[Arm, float]:
    """An arm whose first step is done, and the seconds that this step took.

    It compiles, lets cuDNN search, and allocates the optimizer's state and the libraries' workspaces.
    """
    arm = _arm(trainee, combination, stage, trainee.stepper(fused=combination.fused)[0])
    arm.before()
    start = time.monotonic()
    float(arm.run().detach())
    return arm, time.monotonic() - start


def _refused(combination: Combination, error: Exception) -> str:
    what = "torch.compile" if combination.compiled else "the fused optimizer" if combination.fused else "the step"
    return f"{what} failed: {one_line(error)}"


def _forward(
    context: Context, name: str, size: Size, combinations: Sequence[Combination], seconds: float
) -> list[Measurement]:
    """Forward passes under inference_mode."""
    arms = []
    for combination in combinations:
        trainee = Trainee(NETWORKS[name], size, context.device, combination)
        trainee.model.eval()
        arms.append(_arm(trainee, combination, "inference", trainee.inference))
    return interleave(context, against_first(arms), seconds, STEPS)


def _batches(context: Context, size: Size, precisions: Sequence[str], seconds: float) -> list[Measurement]:
    """The MLP's other batches, each precision against FP32 at the same batch."""
    arms: list[Arm] = []
    for batch in OTHER_BATCHES:
        of_batch: list[Arm] = []
        for precision in (precision for precision in precisions if precision != "float16"):
            combination = Combination(precision=precision)
            trainee = Trainee(NETWORKS["mlp"], replace(size, batch=batch), context.device, combination)
            of_batch.append(_arm(trainee, combination, "batch", trainee.stepper(fused=False)[0]))
        arms += against_first(of_batch)
    return interleave(context, arms, seconds, STEPS)


def _arm(trainee: Trainee, combination: Combination, stage: str, run: Any) -> Arm:
    name = next(name for name, network in NETWORKS.items() if network is trainee.network)
    return Arm(
        params={"network": name, "batch": trainee.size.batch, "stage": stage, **combination.params},
        run=run,
        work=trainee.size.batch,
        before=partial(set_flags, combination),
    )
