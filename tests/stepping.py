"""Training steps as a user would write them, and the search for their batch size on this machine's CPU."""

import os
import time
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from making import serving

from gputune.batch_size import BatchSizeRequest, BatchSizes, search
from gputune.errors import MeasureError

TRAINING = """
import torch
def make_training():
    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(layer.parameters())
    def step(batch_size):
        if batch_size > 100:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
        layer(torch.randn(batch_size, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step
def broken():
    def step(batch_size):
        raise ValueError("wrong shapes")
    return step
def nothing(): pass
"""
"""A file of steps: one that runs up to a batch of 100, one that fails, and one that is none."""

SLEEPY = "import time; time.sleep(2e-3 + batch_size * 1e-5)"
"""Twice the batch is nearly twice the throughput at first, and no more at the end."""


def written(folder: Path, body: str, before: str = "pass") -> str:
    """Write a make_training() that runs `before` and returns the step `body`; return its name."""
    path = folder / "training.py"
    path.write_text(
        "import os, pathlib, signal, time, torch\n"
        f"def make_training():\n{indent(dedent(before), '    ')}\n"
        f"    def step(batch_size):\n{indent(dedent(body), '        ')}\n    return step\n"
    )
    return f"{path}:make_training"


def found(make: str, **asked: Any) -> BatchSizes:
    answer = search(BatchSizeRequest(make=make, device="cpu", **{"seconds": 10, **asked}))
    assert no_process_is_left()
    return answer


def refusal(make: str, **asked: Any) -> MeasureError:
    with pytest.raises(MeasureError) as refused:
        search(BatchSizeRequest(make=make, device="cpu", **{"seconds": 10, **asked}))
    assert "\n" not in str(refused.value)
    assert refused.value.remedy
    assert no_process_is_left()
    return refused.value


def no_process_is_left() -> bool:
    """The kernel may take a moment over what was killed."""
    deadline = time.monotonic() + 30
    while serving(str(os.getpid())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not serving(str(os.getpid()))
