"""One combination of a reference network's training steps as an arm of a comparison, and the memory that it takes."""

import time
from functools import partial
from typing import Any

from gputune.bench_process import Context
from gputune.benches._networks import NETWORKS
from gputune.benches._steps import Trainee, set_flags
from gputune.benches._timing import Arm, Metric
from gputune.settings._training_rows import BENCH, Combination

STEPS = Metric(BENCH, "samples/s")
PEAK_MEMORY = Metric(BENCH, "MiB", "peak_memory")


def fact_of(name: str) -> str:
    return f"bench.training_step.{name}"


def started(trainee: Trainee, combination: Combination, stage: str) -> tuple[Arm, float]:
    """An arm whose first step is done, and the seconds that this step took.

    It compiles, lets cuDNN search, and allocates the optimizer's state and the libraries' workspaces.
    """
    arm = arm_of(trainee, combination, stage, trainee.stepper(fused=combination.fused)[0])
    arm.before()
    start = time.monotonic()
    float(arm.run().detach())
    return arm, time.monotonic() - start


def arm_of(trainee: Trainee, combination: Combination, stage: str, run: Any) -> Arm:
    name = next(name for name, network in NETWORKS.items() if network is trainee.network)
    return Arm(
        params={"network": name, "batch": trainee.size.batch, "stage": stage, **combination.params},
        run=run,
        work=trainee.size.batch,
        before=partial(set_flags, combination),
    )


def allocated_bytes(context: Context) -> int:
    """Bytes allocated on a GPU, with cuBLAS's workspace; 0 on a CPU."""
    if not context.cuda:
        return 0
    import torch

    small = torch.zeros(64, 64, device=context.device)
    small @ small  # cuBLAS takes its workspace
    return int(torch.cuda.memory_allocated(context.device))


def peak_bytes(context: Context, arm: Arm) -> int:
    """The most that is allocated while a step runs."""
    forget_peak(context)
    arm.run()
    return peak_since(context)


def forget_peak(context: Context) -> None:
    import torch

    if context.cuda:
        torch.cuda.reset_peak_memory_stats()


def peak_since(context: Context) -> int:
    """The most bytes that were allocated on the GPU since the peak was forgotten."""
    import torch

    return int(torch.cuda.max_memory_allocated())
