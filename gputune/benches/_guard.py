"""The accuracy guard: the final losses of short trainings, in FP32 from several seeds and in each other precision
from the first.

`settings/_accuracy_guard.py` holds the rule that refuses a precision for them.
"""

import math
import time
from collections.abc import Iterator, Sequence

from gputune.bench_process import Context
from gputune.benches._networks import NETWORKS, Size
from gputune.benches._steps import Trainee, set_flags
from gputune.benches._timing import Metric
from gputune.facts.gap import Gap
from gputune.measurement import Measurement, rounded
from gputune.settings._training_rows import BENCH, Combination, FinalLoss

SEEDS = range(5)
STEPS = 60
LAST = 5
"""The final loss is the mean over this many last steps, since each step has another batch."""


def final_losses(
    context: Context, name: str, size: Size, precisions: Sequence[str], seconds: float
) -> Iterator[Measurement | Gap]:
    """A row for each FP32 seed and other precision; a Gap where FP32, the slowest, would exceed `seconds`."""
    runs = [("float32", seed) for seed in SEEDS] + [
        (precision, 0) for precision in precisions if precision != "float32"
    ]
    start = time.monotonic()
    for number, (precision, seed) in enumerate(runs):
        if number == 1 and (time.monotonic() - start) * len(SEEDS) > seconds:
            reason = f"the accuracy guard of the {name} needs more than {seconds:.0f} s here, and was left out"
            yield Gap(fact=f"bench.training_step.{name}", reason=reason)
            return
        context.say(f"{name}: final loss in {precision}, seed {seed}")
        yield _row(context, name, size, precision, seed)


def _row(context: Context, name: str, size: Size, precision: str, seed: int) -> Measurement:
    losses, skipped = _train(context, name, size, precision, seed)
    first, final = losses[0], math.fsum(losses[-LAST:]) / LAST
    finite = math.isfinite(first) and math.isfinite(final)
    run = FinalLoss(
        network=name,
        precision=precision,
        seed=seed,
        steps=STEPS,
        first_loss=rounded(first) if finite else 1.0,  # nothing is compared with a loss that diverged
        skipped=skipped if precision == "float16" else None,
        diverged=not finite,
    )
    return Metric(BENCH, "1", "final_loss").row(context, [final if finite else 0.0], run.params)


def _train(context: Context, name: str, size: Size, precision: str, seed: int) -> tuple[list[float], int]:
    """The loss of every step, and how many steps the GradScaler skipped."""
    import torch

    combination = Combination(precision=precision)
    set_flags(combination)
    trainee = Trainee(NETWORKS[name], size, context.device, combination, seed)
    step, scaler = trainee.stepper(fused=False, rate=NETWORKS[name].guard_rate)
    losses, skipped = [], 0
    for _ in range(STEPS):
        trainee.next_batch()
        scale = scaler.get_scale()
        losses.append(step().detach())
        skipped += scaler.get_scale() < scale
    return [float(loss) for loss in torch.stack(losses).cpu()], skipped
