"""Arguments for Lightning's Trainer: `lightning.Trainer(**trainer_kwargs(tuning))`.

The Trainer has one knob for a profile, its precision. The rest goes where it goes without Lightning:

- `tuning.prepare(network)` around the network that `training_step` calls. Around the LightningModule it would compile nothing,
  for Lightning calls its `training_step`.
- `tuning.optimizer_kwargs()` in `configure_optimizers`, but not along with `gradient_clip_val` in mixed precision: Lightning
  raises RuntimeError at the first step with a fused optimizer then.
- `tuning.dataloader_kwargs(dataset)` for the DataLoader.

`benchmark` is not given: without it the flag stays as `gputune.apply` set it, and `deterministic=True` still wins.

Source: Lightning 2.6.6, trainer/connectors/accelerator_connector.py, plugins/precision/amp.py and utilities/argparse.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

VARIABLE = "PL_TRAINER_PRECISION"
"""The user's own choice; an argument would win over it."""

_PRECISIONS = {"bfloat16": "bf16-mixed", "float16": "16-mixed"}


def trainer_kwargs(tuning: Tuning) -> dict[str, Any]:
    """`precision`, where the profile chose mixed precision and PL_TRAINER_PRECISION is not set.

    Of float16 Lightning makes bfloat16 on a CPU, with a warning. The GradScaler is Lightning's own.
    """
    if os.environ.get(VARIABLE):
        return {}
    precision = _PRECISIONS.get(str(tuning.use("amp_dtype")))
    return {"precision": precision} if precision else {}
