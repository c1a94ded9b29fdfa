"""Arguments for Accelerate's Accelerator: `accelerate.Accelerator(**accelerator_kwargs(tuning))`.

The Accelerator takes one of a profile's choices, mixed precision. The others are used as without Accelerate:
`tuning.prepare(model)` and `tuning.optimizer_kwargs()` before `accelerator.prepare`, and
`tuning.dataloader_kwargs(dataset)` for the DataLoader.

A dynamo backend is not returned: with one, and without mixed precision, Accelerate allows TF32 in matmuls whatever the
profile says. `tuning.prepare` compiles.

Source: Accelerate 1.15.0, accelerator.py, state.py and utils/launch.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

VARIABLE = "ACCELERATE_MIXED_PRECISION"
"""Exported by `accelerate launch` from its option or configuration file. An argument would override it."""
_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16"}


def accelerator_kwargs(tuning: Tuning) -> dict[str, Any]:
    """`mixed_precision`, where the profile chose it and the user requested none from `accelerate launch`.

    On a CPU Accelerate runs fp16 in FP32. The GradScaler is Accelerate's own.
    """
    precision = mixed_precision(tuning)
    return {"mixed_precision": precision} if precision else {}


def mixed_precision(tuning: Tuning) -> str | None:
    """The profile's precision under Accelerate's name; None without one, and where Accelerate's variable names one.

    `accelerate launch` exports "no" by default too, so "no" does not count as the user's choice.
    """
    if os.environ.get(VARIABLE, "no").lower() not in ("", "no"):
        return None
    return _PRECISIONS.get(str(tuning.use("amp_dtype")))
