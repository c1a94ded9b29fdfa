"""The process that benches run in: started, given requests and replaced by its parent, since any bench may kill it.

Here is the input of a bench: where to measure, on what machine, for how long, and what the user named.
"""

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
    """A matmul that the user named: `linear(x[m, k], w[n, k])`."""

    m: int
    n: int
    k: int
    dtype: str
    """bfloat16, float16, tf32 or float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDataset:
    """A dataset or DataLoader that the user named, and how fast its batches are consumed."""

    path: str
    """The callable that returns it, as `path.py:callable` or `package.module:callable`."""
    batch_size: int | None = None
    """None: the DataLoader's own, or for a dataset the bench's default."""
    step_ms: float | None = None
    """How long the consumer works on each batch; None: it takes batches as fast as they come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """The user's training step, to be run in batches of these sizes."""

    make: str
    """The callable that returns the step, as `path.py:callable` or `package.module:callable`."""
    sizes: tuple[int, ...]
    timed: bool = False
    """Whether the sizes are timed in turn; otherwise each is tried for a moment, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    seconds: float
    budget: Budget
    shapes: tuple[MatmulShape, ...] = ()
    dataset: tuple[UserDataset, ...] = ()
    """One at most."""
    batches: Batches | None = None


@dataclass(frozen=True, kw_only=True)
class Context(Work):
    device: str
    """By torch's name: cuda:0, cpu."""
    facts: Facts
    say: Callable[[str], None] = lambda text: None
    """To be called with what the bench is doing now."""

    @property
    def cuda(self) -> bool:
        return self.device.startswith("cuda")

    @cached_property
    def telemetry(self) -> Telemetry:
        gpu = self.facts.device_gpu(self.device)
        return Telemetry(gpu.index if gpu and self.facts.driver.nvml else None)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that the device multiplies natively: float32 first, then tf32, bfloat16, float16."""
        if not self.cuda:
            return ("float32", "bfloat16") if self.facts.precision.cpu_bfloat16 else ("float32",)
        gpu = self.facts.device_gpu(self.device)
        native = gpu.tensor_core_dtypes if gpu else ()
        return ("float32", *(name for name in ("tf32", "bfloat16", "float16") if name in native))

    @property
    def matmul_dtypes(self) -> tuple[str, ...]:
        """The dtypes that the device has matmuls for: `dtypes`, and float8, which nothing else has."""
        gpu = self.facts.device_gpu(self.device) if self.cuda else None
        return (*self.dtypes, "float8") if gpu and "float8" in gpu.tensor_core_dtypes else self.dtypes

    @property
    def main_dtype(self) -> str:
        """The dtype in which a network would be trained on the device."""
        return next(dtype for dtype in ("bfloat16", "float16", "float32") if dtype in self.dtypes)

    def free_bytes(self) -> int:
        """Return the memory of the GPU that this process may still use, within the share that torch was limited to."""
        import torch

        free, total = torch.cuda.mem_get_info(self.device)
        reserved, used = torch.cuda.memory_reserved(self.device), torch.cuda.memory_allocated(self.device)
        limit = getattr(torch.cuda, "get_per_process_memory_fraction", lambda device: 1.0)(self.device)
        return int(min(free + reserved, limit * total) - used)
