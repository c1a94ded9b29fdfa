"""Arguments for Accelerate's Accelerator: `accelerate.Accelerator(**accelerator_kwargs(tuning))`.

The Accelerator has one knob for a profile, its mixed precision. The rest goes where it goes without Accelerate:
`tuning.prepare(model)` and `tuning.optimizer_kwargs()` before `accelerator.prepare`, and `tuning.dataloader_kwargs(dataset)`
for the DataLoader.

A dynamo backend is not given: with one and without mixed precision Accelerate allows TF32 in matmuls, whatever the profile says.
`tuning.prepare` compiles.

Source: Accelerate 1.15.0, accelerator.py, state.py and utils/launch.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

VARIABLE = "ACCELERATE_MIXED_PRECISION"
"""What `accelerate launch` exports of its option and its configuration file; an argument would win over it."""

_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16"}


def accelerator_kwargs(tuning: Tuning) -> dict[str, Any]:
    """`mixed_precision`, where the profile chose it and the user asked `accelerate launch` for none.

    On a CPU Accelerate lets fp16 run in FP32. The GradScaler is Accelerate's own.
    """
    precision = mixed_precision(tuning)
    return {"mixed_precision": precision} if precision else {}


def mixed_precision(tuning: Tuning) -> str | None:
    """The profile's choice in Accelerate's words; None without one, and where the user asked for one by Accelerate's variable.

    `accelerate launch` exports "no" also where nobody asked for anything, so that is no choice of the user's.
    """
    if os.environ.get(VARIABLE, "no").lower() not in ("", "no"):
        return None
    return _PRECISIONS.get(str(tuning.use("amp_dtype")))
