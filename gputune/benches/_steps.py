"""One optimizer step of a reference network under a combination of options, as an arm of a comparison, and the memory
that it takes.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from gputune.advice._training_rows import BENCH
from gputune.bench_process import Context
from gputune.benches._networks import NETWORKS, Network, Size
from gputune.benches._timing import Arm, Metric
from gputune.knobs import _tf32
from gputune.search.combination import Combination

STEPS = Metric(BENCH, "samples/s")
PEAK_MEMORY = Metric(BENCH, "MiB", "peak_memory")


class Trainee:
    """A model, a batch, precision, memory format and compilation; combinations differing in the optimizer share it."""

    def __init__(self, network: Network, size: Size, device: str, combination: Combination, seed: int = 0) -> None:
        import torch

        self.network, self.size, self.device, self.combination = network, size, device, combination
        torch.manual_seed(seed)
        with torch.device(device):
            self.model = network.build(size)
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
        with self._autocast():
            return self.network.loss(self.forward(self.inputs), self.targets)

    def _autocast(self) -> Any:
        import torch

        dtype = self.combination.values.get("amp_dtype")
        if dtype is None:
            return nullcontext()
        return torch.autocast(self.device.partition(":")[0], dtype=getattr(torch, str(dtype)))

    def stepper(self, *, fused: bool, rate: float | None = None) -> tuple[Callable[[], Any], Any]:
        """A function that makes one step and returns the loss, and its GradScaler (enabled for float16 only).
        Raises RuntimeError or TypeError where this torch has no fused optimizer for the device.
        """
        import torch

        options = {"lr": rate or self.network.rate, **({"fused": True} if fused else {})}
        optimizer = getattr(torch.optim, self.network.optimizer)(self.model.parameters(), **options)
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
    name = next(name for name, network in NETWORKS.items() if network is trainee.network)
    values: dict[str, Any] = combination.values
    arm = Arm(
        params={"network": name, "batch": trainee.size.batch, "stage": stage, **values},
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


def forget_peak(context: Context) -> None:
    import torch

    if context.cuda:
        torch.cuda.reset_peak_memory_stats()


def peak_bytes() -> int:
    import torch

    return int(torch.cuda.max_memory_allocated())
