"""The clock of a block of steps: the time between two of them, as the device comes to their ends.

The host may be ahead of a GPU. A clock that waits for the GPU first and last makes it idle for as long as the host had
been ahead, in each block once: where the host is the limit, blocks of two steps took 28.8 ms for one that takes 23.5.
"""

import time
from typing import Any


class Clock:
    """Started when it is made, behind a step."""

    def __init__(self, device: str) -> None:
        self._event: Any = None
        if device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record()
        self._begun = time.perf_counter()

    def stop(self) -> dict[str, Any]:
        """The seconds since then by the device's clock and by the host's, and the peak of the memory that this process
        had allocated on the GPU meanwhile, in bytes; None without a GPU. The GPU has finished its work then.
        """
        if self._event is None:
            seconds = time.perf_counter() - self._begun
            return {"seconds": seconds, "host_seconds": seconds, "peak_bytes": None}
        import torch

        end = torch.cuda.Event(enable_timing=True)
        end.record(torch.cuda.current_stream(self._event.device))
        torch.cuda.synchronize()
        return {
            "seconds": self._event.elapsed_time(end) / 1000,
            "host_seconds": time.perf_counter() - self._begun,
            "peak_bytes": torch.cuda.max_memory_allocated(),
        }
