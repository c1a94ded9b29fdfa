"""The groups in which the training steps of a reference network are measured: the arms of each are timed in turn. And
the accuracy guard: the final losses of short trainings, in FP32 from several seeds and in each other precision from the
first, for which `advice/_training_rows.py` refuses a precision.
"""

import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from gputune.advice._training_rows import BENCH, FinalLoss, with_precision
from gputune.bench_process import Context
from gputune.benches._errors import one_line, out_of_memory, synchronize
from gputune.benches._networks import NETWORKS, RATES, Size
from gputune.benches._timing import Arm, Metric, interleave, or_gap, time_of
from gputune.facts.gap import Gap
from gputune.knobs import _tf32
from gputune.measurement import Measurement, rounded
from gputune.search.combination import DEFAULT, Combination
from gputune.search.rounds import ranked

STEPS = Metric(BENCH, "samples/s")
PEAK_MEMORY = Metric(BENCH, "MiB", "peak_memory")

SEEDS = range(5)
GUARD_STEPS = 60
LAST = 5
"""The final loss is the mean over this many last steps, since each step has another batch."""

Found = Measurement | Gap


class Trainee:
    """A model, a batch, precision, memory format and compilation; combinations differing in the optimizer share it."""

    def __init__(self, name: str, size: Size, device: str, combination: Combination, seed: int = 0) -> None:
        import torch

        self.name, self.size, self.device, self.combination = name, size, device, combination
        self.network = NETWORKS[name]
        torch.manual_seed(seed)
        with torch.device(device):
            self.model = self.network.build(size)
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.next_batch()
        if "channels_last" in combination:
            self.model = self.model.to(memory_format=torch.channels_last)
        # Not model.compile(), which compiles nothing where the outermost module is one of torch's own.
        self.forward = torch.compile(self.model) if "compile" in combination else self.model

    def next_batch(self) -> None:
        import torch

        self.inputs, self.targets = self.network.data(self.size, self.device, self.generator)
        if "channels_last" in self.combination:
            self.inputs = self.inputs.to(memory_format=torch.channels_last)

    def loss(self) -> Any:
        import torch

        dtype = self.combination.values.get("amp_dtype")
        kind = self.device.partition(":")[0]
        with torch.autocast(kind, dtype=getattr(torch, str(dtype))) if dtype else nullcontext():
            return self.network.loss(self.forward(self.inputs), self.targets)

    def stepper(self, *, fused: bool, rate: float | None = None) -> tuple[Callable[[], Any], Any]:
        """A function that makes one step and returns the loss, and its GradScaler (enabled for float16 only).
        Raises RuntimeError or TypeError where this torch has no fused optimizer for the device.
        """
        import torch

        name = self.network.optimizer
        options = {"lr": rate or RATES[name], **({"fused": True} if fused else {})}
        optimizer = getattr(torch.optim, name)(self.model.parameters(), **options)
        needs_scaler = self.combination.values.get("amp_dtype") == "float16"
        scaler = torch.amp.GradScaler(self.device.partition(":")[0], enabled=needs_scaler)

        def step() -> Any:
            loss = self.loss()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            return loss

        return step, scaler


def set_flags(combination: Combination) -> None:
    """Set the global flags of a combination. torch's cache of cuDNN's plans knows whether TF32 is allowed, but nothing
    of `cudnn.benchmark`: with that, in 16 bits only, TF32 is not allowed, so that each keeps plans of its own.
    """
    import torch

    searches = "cudnn_benchmark" in combination
    _tf32.set_matmul("matmul_precision" in combination)
    _tf32.set_cudnn(not searches)
    torch.backends.cudnn.benchmark = searches


def fact_of(name: str) -> str:
    return f"bench.training_step.{name}"


def started(trainee: Trainee, combination: Combination, stage: str) -> tuple[Arm, float]:
    """An arm whose first step is done, and the seconds of that step, which compiles, searches and allocates."""
    values: dict[str, Any] = combination.values
    arm = Arm(
        params={"network": trainee.name, "batch": trainee.size.batch, "stage": stage, **values},
        run=trainee.stepper(fused="fused_optimizer" in combination)[0],
        work=trainee.size.batch,
        before=partial(set_flags, combination),
    )
    arm.before()
    start = time.monotonic()
    float(arm.run().detach())
    return arm, time.monotonic() - start


def allocated_bytes(context: Context) -> int:
    """Bytes allocated on a GPU, with cuBLAS's workspace; 0 on a CPU."""
    if not context.cuda:
        return 0
    import torch

    small = torch.zeros(64, 64, device=context.device)
    small @ small  # cuBLAS takes its workspace
    return int(torch.cuda.memory_allocated(context.device))


def peak_row(context: Context, arm: Arm, before: int) -> Measurement:
    """How much more than `before`, in bytes, was allocated at the peak."""
    import torch

    return PEAK_MEMORY.row(context, [(torch.cuda.max_memory_allocated() - before) / 2**20], arm.params)


def precisions(context: Context, name: str, size: Size, seconds: float) -> list[Found]:
    """Every precision in both formats, with the peak memory of each. A precision in which no step runs is a Gap."""
    import torch

    formats = (False, True) if NETWORKS[name].images else (False,)
    planned = list(itertools.product(context.dtypes, formats))
    fact, what = fact_of(name), f"the {name}'s steps"
    arms: list[Arm] = []
    found: list[Found] = []
    for precision, last in planned:
        combination = with_precision(Combination.of({"channels_last": True} if last else {}), precision)
        before = allocated_bytes(context)
        trainee = Trainee(name, size, context.device, combination)
        try:
            arm, _ = started(trainee, combination, "precision")
        except RuntimeError as error:
            if out_of_memory(error) or combination.level != "mixed":
                raise
            found.append(Gap(fact=fact, reason=f"a step in {precision} failed: {one_line(error)}"))
            arm = None
        if arm is None:
            synchronize(context)
            del trainee  # its memory is not to be free only while the next one's is measured; the error held it, too
            gc.collect()
            continue
        if not arms and time_of(context, arm.run, 1) * len(planned) > seconds:
            return [*found, *or_gap([], fact, what)]
        if context.cuda:
            torch.cuda.reset_peak_memory_stats()
            arm.run()
            found.append(peak_row(context, arm, before))
        arms.append(arm)
    return [*found, *or_gap(interleave(context, ranked(arms), seconds, STEPS), fact, what)]


def bases_of(context: Context, name: str, best: Combination) -> list[Combination]:
    """The best precision and format; in the thorough budget also with torch.compile and cuDNN's own search."""
    if context.budget != "thorough":
        return [best]
    bases = [best, best.plus("compile", True)]
    if not (context.cuda and NETWORKS[name].images and best.level == "mixed"):
        return bases
    return [one for base in bases for one in (base, base.plus("cudnn_benchmark", True))]


def options(context: Context, name: str, size: Size, bases: Sequence[Combination], seconds: float) -> Iterator[Found]:
    import torch

    searches = any("cudnn_benchmark" in base for base in bases)  # on a GPU only
    arms: list[Arm] = []
    trainees: dict[bool, Trainee] = {}
    before = allocated_bytes(context)
    for base, fused in itertools.product(bases, (False, True)):
        combination = base.plus("fused_optimizer", True) if fused else base
        compiled = base.is_compiled
        try:
            if compiled not in trainees:
                trainees[compiled] = Trainee(name, size, context.device, base)
            if searches:
                torch.cuda.reset_peak_memory_stats()
            arm, taken = started(trainees[compiled], combination, "options")
        except Exception as error:  # a compiler may fail with anything
            if out_of_memory(error) or not (compiled or fused):
                raise
            what = "torch.compile" if compiled else "the fused optimizer"
            yield Gap(fact=fact_of(name), reason=f"{what} failed: {one_line(error)}")
            continue
        arms.append(arm)
        if searches and not fused and not compiled:  # the first step, in which the search takes its memory
            yield peak_row(context, arm, before)
        if not fused and compiled != ("cudnn_benchmark" in base):
            metric = Metric(BENCH, "s", "compile_time" if compiled else "search_time")
            yield metric.row(context, [taken], arm.params)
    yield from or_gap(interleave(context, ranked(arms), seconds, STEPS), fact_of(name), f"the {name}'s options")


def final_losses(context: Context, name: str, size: Size, precisions: Sequence[str], seconds: float) -> Iterator[Found]:
    """A row for each FP32 seed and other precision; a Gap where FP32, the slowest, would exceed `seconds`."""
    runs = [("float32", seed) for seed in SEEDS]
    runs += [(precision, 0) for precision in precisions if precision != "float32"]
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
    trainee = Trainee(name, size, context.device, combination, seed)
    step, scaler = trainee.stepper(fused=False, rate=trainee.network.guard_rate)
    losses, skipped = [], 0
    for _ in range(GUARD_STEPS):
        trainee.next_batch()
        scale = scaler.get_scale()
        losses.append(step().detach())
        skipped += scaler.get_scale() < scale
    return [float(loss) for loss in torch.stack(losses).cpu()], skipped
