"""The time of a block of steps."""

import time
from typing import Any


class Clock:
    """From when it is made to `stop`, by the GPU's own clock in a process that uses one. Nothing waits for the GPU."""

    def __init__(self) -> None:
        self._begun = _mark()
        self._ended: Any = None

    def stop(self) -> None:
        """The first time counts."""
        self._ended = self._ended or _mark()

    def seconds(self) -> float | None:
        """None as long as the GPU is not that far."""
        if isinstance(self._begun, float):
            return float(self._ended - self._begun)
        return self._begun.elapsed_time(self._ended) / 1000 if self._ended.query() else None


def _mark() -> Any:
    import torch

    if not torch.cuda.is_initialized():
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
