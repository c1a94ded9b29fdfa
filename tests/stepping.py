"""Training steps for the search of a batch size, written as a user would, and the search itself on this machine's CPU."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from making import serving

from gputune.batch_sizing import BatchSizes, Request, search
from gputune.errors import MeasureError

SLEEPY = "import time; time.sleep(2e-3 + batch_size * 1e-5)"
"""Twice the batch is nearly twice the throughput at first, and no more at the end."""


def written(folder: Path, body: str, before: str = "pass") -> str:
    path = folder / "training.py"
    path.write_text(
        "import os, pathlib, signal, time, torch\n"
        f"def make_training():\n{indent(dedent(before), '    ')}\n"
        f"    def step(batch_size):\n{indent(dedent(body), '        ')}\n    return step\n"
    )
    return f"{path}:make_training"


def found(make: str, **asked: Any) -> BatchSizes:
    answer = search(Request(make=make, device="cpu", **{"seconds": 10, **asked}))
    assert not serving(str(os.getpid())), "no worker is left"
    return answer


def refusal(make: str, **asked: Any) -> MeasureError:
    with pytest.raises(MeasureError) as refused:
        search(Request(make=make, device="cpu", **{"seconds": 10, **asked}))
    assert "\n" not in str(refused.value)
    assert refused.value.remedy
    assert not serving(str(os.getpid()))
    return refused.value
