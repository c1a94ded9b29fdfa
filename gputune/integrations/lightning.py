"""Arguments for Lightning's Trainer: `lightning.Trainer(**trainer_kwargs(tuning))`.

The Trainer takes one of a profile's choices, the precision. The others are used as without Lightning:

- `tuning.prepare(network)` for the network that `training_step` calls. A compiled LightningModule would gain nothing,
  because Lightning calls its `training_step`, which stays uncompiled.
- `tuning.optimizer_kwargs()` in `configure_optimizers`, but not together with `gradient_clip_val` in mixed precision:
  Lightning raises RuntimeError at the first step with a fused optimizer there.
- `tuning.dataloader_kwargs(dataset)` for the DataLoader.

`benchmark` is not returned: without it the flag stays as `gputune.apply` set it, and `deterministic=True` still wins.

Source: Lightning 2.6.6, trainer/connectors/accelerator_connector.py, plugins/precision/amp.py and
utilities/argparse.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

VARIABLE = "PL_TRAINER_PRECISION"
"""A default that the user exports for the Trainer. An argument would override it."""
_PRECISIONS = {"bfloat16": "bf16-mixed", "float16": "16-mixed"}


def trainer_kwargs(tuning: Tuning) -> dict[str, Any]:
    """`precision`, where the profile chose mixed precision and PL_TRAINER_PRECISION is not set.

    On a CPU Lightning replaces float16 by bfloat16, with a warning. The GradScaler is Lightning's own.
    """
    if os.environ.get(VARIABLE):
        return {}
    precision = _PRECISIONS.get(str(tuning.use("amp_dtype")))
    return {"precision": precision} if precision else {}
