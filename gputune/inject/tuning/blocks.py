"""The clock of a block of steps: it runs from when the device comes to the end of the step before to when it
comes to the end of the last.

The host may be ahead of a GPU. A clock that waited for the GPU before and after a block would add to it what the host
was ahead, and so tell against whatever the host limits, the more the shorter the block.
"""

import time
from typing import Any


class Clock:
    """Started when it is made, right behind a step that was made without a pause before it."""

    def __init__(self, device: str) -> None:
        self._event: Any = None
        if device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record()
        self._begun = time.perf_counter()

    def stop(self) -> dict[str, Any]:
        """The seconds since then, and the peak of the memory that this process had allocated on the GPU meanwhile, in
        bytes; None without a GPU, which on return is idle.
        """
        if self._event is None:
            return {"seconds": time.perf_counter() - self._begun, "peak_bytes": None}
        import torch

        device = self._event.device  # which need not be the current one any more
        end = torch.cuda.Event(enable_timing=True)
        end.record(torch.cuda.current_stream(device))
        torch.cuda.synchronize(device)
        seconds = self._event.elapsed_time(end) / 1000
        if seconds <= 0:  # two streams took turns, and the one with the end was ahead
            seconds = time.perf_counter() - self._begun
        return {"seconds": seconds, "peak_bytes": torch.cuda.max_memory_allocated(device)}
