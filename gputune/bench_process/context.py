"""What a bench is given: where to measure, on what machine, for how long, and what the user asked about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from gputune.bench_process.telemetry import Telemetry
from gputune.facts import Facts

Budget = Literal["quick", "standard", "thorough"]
BUDGETS: tuple[Budget, ...] = ("quick", "standard", "thorough")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulShape:
    """A matmul of the user's own: `linear(x[m, k], w[n, k])`. None leaves it to the bench what is usual on the device."""

    m: int | None = None
    n: int
    k: int | None = None
    dtype: str | None = None
    """bfloat16, float16, tf32 or float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDataset:
    """A dataset or DataLoader of the user's own, and how it is consumed."""

    path: str
    """What makes it, as `path.py:callable` or `package.module:callable`."""
    batch_size: int | None = None
    """None leaves it to the DataLoader, or to the bench where there is none."""
    step_ms: float | None = None
    """How long the consumer works on each batch; None: not at all, it takes batches as fast as they come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Training steps of the user's own, in batches of these sizes."""

    make: str
    """What makes the step, as `path.py:callable` or `package.module:callable`."""
    sizes: tuple[int, ...]
    timed: bool = False
    """Timed in turn instead of tried one after the other."""


@dataclass(kw_only=True)
class Context:
    """What a bench is given: where to measure, on what machine, for how long, and whom to tell."""

    device: str
    """torch's name: cuda:0, cpu."""
    facts: Facts
    seconds: float
    budget: Budget
    shapes: tuple[MatmulShape, ...] = ()
    """What the user asked about."""
    dataset: tuple[UserDataset, ...] = ()
    """Likewise."""
    batches: Batches | None = None
    say: Callable[[str], None] = lambda text: None

    @property
    def cuda(self) -> bool:
        return self.device.startswith("cuda")

    @cached_property
    def telemetry(self) -> Telemetry:
        gpu = self.facts.device_gpu(self.device)
        return Telemetry(gpu.index if gpu and self.facts.driver.nvml else None)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """What the device multiplies natively, as benches name it: float32 first, then tf32, bfloat16, float16."""
        if not self.cuda:
            return ("float32", "bfloat16") if self.facts.precision.cpu_bfloat16 else ("float32",)
        gpu = self.facts.device_gpu(self.device)
        native = gpu.tensor_core_dtypes if gpu else ()
        return ("float32", *(name for name in ("tf32", "bfloat16", "float16") if name in native))

    @property
    def matmul_dtypes(self) -> tuple[str, ...]:
        """These, and float8, which only matmuls have."""
        gpu = self.facts.device_gpu(self.device) if self.cuda else None
        return (*self.dtypes, "float8") if gpu and "float8" in gpu.tensor_core_dtypes else self.dtypes

    @property
    def main_dtype(self) -> str:
        """What a network would be trained in."""
        return next(dtype for dtype in ("bfloat16", "float16", "float32") if dtype in self.dtypes)

    def free_bytes(self) -> int:
        """Memory of a GPU that this process may still use: what is free, within the share that torch was limited to."""
        import torch

        free, total = torch.cuda.mem_get_info(self.device)
        reserved, used = torch.cuda.memory_reserved(self.device), torch.cuda.memory_allocated(self.device)
        limit = getattr(torch.cuda, "get_per_process_memory_fraction", lambda device: 1.0)(self.device)
        return int(min(free + reserved, limit * total) - used)
