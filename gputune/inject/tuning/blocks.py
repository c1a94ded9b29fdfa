"""The clock of a block of steps: wall time between two moments at which the device has finished its work."""

import time
from typing import Any


class Clock:
    """Started when it is made."""

    def __init__(self, device: str) -> None:
        self._on_gpu = device == "cuda"
        self._synchronize()
        if self._on_gpu:
            import torch

            torch.cuda.reset_peak_memory_stats()
        self._begun = time.perf_counter()

    def stop(self) -> dict[str, Any]:
        """The seconds since then, and the peak of the memory that this process had allocated on the GPU meanwhile, in
        bytes; None without a GPU.
        """
        self._synchronize()
        seconds = time.perf_counter() - self._begun
        if not self._on_gpu:
            return {"seconds": seconds, "peak_bytes": None}
        import torch

        return {"seconds": seconds, "peak_bytes": torch.cuda.max_memory_allocated()}

    def _synchronize(self) -> None:
        if self._on_gpu:
            import torch

            torch.cuda.synchronize()
