"""The groups in which the training steps of a reference network are measured: the arms of each are timed in turn. And
the accuracy guard: the final losses of short trainings, in FP32 from several seeds and in each other precision from the
first, for which `knobs/_training_rows.py` refuses a precision.
"""

import gc
import itertools
import math
import time
from collections.abc import Iterator, Sequence

from gputune.advice._training_rows import BENCH, FinalLoss, with_precision
from gputune.bench_process import Context
from gputune.benches._errors import one_line, out_of_memory, synchronize
from gputune.benches._networks import NETWORKS, Size
from gputune.benches._steps import (
    PEAK_MEMORY,
    STEPS,
    Trainee,
    allocated_bytes,
    fact_of,
    forget_peak,
    peak_bytes,
    set_flags,
    started,
)
from gputune.benches._timing import Arm, Metric, interleave, or_gap, time_of
from gputune.facts.gap import Gap
from gputune.measurement import Measurement, rounded
from gputune.search.combination import DEFAULT, Combination
from gputune.search.rounds import ranked

SEEDS = range(5)
GUARD_STEPS = 60
LAST = 5
"""The final loss is the mean over this many last steps, since each step has another batch."""

Found = Measurement | Gap


def precisions(context: Context, name: str, size: Size, seconds: float) -> list[Found]:
    """Every precision in both formats, with the peak memory of each. A precision in which no step runs is a Gap."""
    formats = (False, True) if NETWORKS[name].images else (False,)
    planned = list(itertools.product(context.dtypes, formats))
    what = f"the {name}'s steps"
    arms: list[Arm] = []
    found: list[Found] = []
    for precision, last in planned:
        combination = with_precision(Combination.of({"channels_last": True} if last else {}), precision)
        before = allocated_bytes(context)
        trainee = Trainee(NETWORKS[name], size, context.device, combination)
        try:
            arm, _ = started(trainee, combination, "precision")
        except RuntimeError as error:
            if out_of_memory(error) or combination.level != "mixed":
                raise
            found.append(Gap(fact=fact_of(name), reason=f"a step in {precision} failed: {one_line(error)}"))
            arm = None
        if arm is None:
            synchronize(context)
            del trainee  # its memory is not to be free only while the next one's is measured; the error held it, too
            gc.collect()
            continue
        if not arms and time_of(context, arm.run, 1) * len(planned) > seconds:
            return [*found, *or_gap([], fact_of(name), what)]
        if context.cuda:
            forget_peak(context)
            arm.run()
            found.append(PEAK_MEMORY.row(context, [(peak_bytes() - before) / 2**20], arm.params))
        arms.append(arm)
    return [*found, *or_gap(interleave(context, ranked(arms), seconds, STEPS), fact_of(name), what)]


def bases_of(context: Context, name: str, best: Combination) -> list[Combination]:
    """The best precision and format; in the thorough budget also with torch.compile and cuDNN's own search."""
    if context.budget != "thorough":
        return [best]
    bases = [best, best.plus("compile", True)]
    if not (context.cuda and NETWORKS[name].images and best.level == "mixed"):
        return bases
    return [one for base in bases for one in (base, base.plus("cudnn_benchmark", True))]


def options(context: Context, name: str, size: Size, bases: Sequence[Combination], seconds: float) -> Iterator[Found]:
    searches = any("cudnn_benchmark" in base for base in bases)
    arms: list[Arm] = []
    trainees: dict[bool, Trainee] = {}
    before = allocated_bytes(context)
    for base, fused in itertools.product(bases, (False, True)):
        combination = base.plus("fused_optimizer", True) if fused else base
        compiled = base.is_compiled
        try:
            if compiled not in trainees:
                trainees[compiled] = Trainee(NETWORKS[name], size, context.device, base)
            forget_peak(context)
            arm, taken = started(trainees[compiled], combination, "options")
        except Exception as error:  # a compiler may fail with anything
            if out_of_memory(error) or not (compiled or fused):
                raise
            what = "torch.compile" if compiled else "the fused optimizer"
            yield Gap(fact=fact_of(name), reason=f"{what} failed: {one_line(error)}")
            continue
        arms.append(arm)
        if searches and not fused and not compiled:  # the first step, in which the search takes its memory
            yield PEAK_MEMORY.row(context, [(peak_bytes() - before) / 2**20], arm.params)
        if not fused and compiled != ("cudnn_benchmark" in base):
            metric = Metric(BENCH, "s", "compile_time" if compiled else "search_time")
            yield metric.row(context, [taken], arm.params)
    yield from or_gap(interleave(context, ranked(arms), seconds, STEPS), fact_of(name), f"the {name}'s options")


def final_losses(context: Context, name: str, size: Size, precisions: Sequence[str], seconds: float) -> Iterator[Found]:
    """A row for each FP32 seed and other precision; a Gap where FP32, the slowest, would exceed `seconds`."""
    runs = [("float32", seed) for seed in SEEDS] + [
        (precision, 0) for precision in precisions if precision != "float32"
    ]
    start = time.monotonic()
    for number, (precision, seed) in enumerate(runs):
        if number == 1 and (time.monotonic() - start) * len(SEEDS) > seconds:
            reason = f"the accuracy guard of the {name} needs more than {seconds:.0f} s here, and was left out"
            yield Gap(fact=fact_of(name), reason=reason)
            return
        context.say(f"{name}: final loss in {precision}, seed {seed}")
        yield _final_loss(context, name, size, precision, seed)


def _final_loss(context: Context, name: str, size: Size, precision: str, seed: int) -> Measurement:
    losses, skipped = _train(context, name, size, precision, seed)
    first, final = losses[0], math.fsum(losses[-LAST:]) / LAST
    finite = math.isfinite(first) and math.isfinite(final)
    run = FinalLoss(
        network=name,
        precision=precision,
        seed=seed,
        steps=GUARD_STEPS,
        first_loss=rounded(first) if finite else 1.0,  # nothing is compared with a loss that diverged
        skipped=skipped if precision == "float16" else None,
        diverged=not finite,
    )
    return Metric(BENCH, "1", "final_loss").row(context, [final if finite else 0.0], run.params)


def _train(context: Context, name: str, size: Size, precision: str, seed: int) -> tuple[list[float], int]:
    """The loss of every step, and how many steps the GradScaler skipped."""
    import torch

    combination = with_precision(DEFAULT, precision)
    set_flags(combination)
    trainee = Trainee(NETWORKS[name], size, context.device, combination, seed)
    step, scaler = trainee.stepper(fused=False, rate=NETWORKS[name].guard_rate)
    losses, skipped = [], 0
    for _ in range(GUARD_STEPS):
        trainee.next_batch()
        scale = scaler.get_scale()
        losses.append(step().detach())
        skipped += scaler.get_scale() < scale
    return [float(loss) for loss in torch.stack(losses).cpu()], skipped
