"""Arguments for transformers' Trainer: `TrainingArguments(output_dir="out", **training_arguments(tuning))`.

Prepare the model before the Trainer is created: `model = tuning.prepare(model)`.

- `torch_compile` is not returned: with it transformers turns TF32 on for the whole process where the GPU has it, except
  in fp16. That would override a profile that refused TF32. From torch 2.9 on transformers sets it through torch's newer
  interface only, after which torch's older getters, which Inductor and Lightning call, raise RuntimeError.
  `tuning.prepare` compiles.
- `tf32` is not returned: it is set in the same way, and false also turns TF32 off in convolutions, where it is torch's
  default. Without the argument transformers changes neither.

Source: transformers 5.23.0, training_args.py, trainer.py and utils/import_utils.py.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gputune.integrations.accelerate import mixed_precision

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

_LOADING = ("num_workers", "prefetch_factor", "pin_memory")


def training_arguments(tuning: Tuning, dataset: Any = None) -> dict[str, Any]:
    """`bf16` or `fp16`, the DataLoader's `dataloader_*`, and `optim`, where they differ from transformers'.

    With `dataset` the number of workers suits its kind of samples (see `Tuning.dataloader_kwargs`): tokens that are in
    memory already load fastest without workers on most machines. Without a GPU transformers requires `use_cpu` along
    with bf16. The Trainer uses the DataLoader's arguments for evaluation too.
    """
    defaults = importlib.import_module("transformers").TrainingArguments
    given = tuning.dataloader_kwargs(dataset)
    # Choices other than false and zero: transformers pins memory by default, which torch does not.
    loading = {f"dataloader_{name}": given[name] for name in _LOADING if given.get(name)}
    # Without a fused optimizer transformers' default stays: fused too, from torch 2.8 on.
    optimizer = {"optim": "adamw_torch_fused"} if tuning.optimizer_kwargs().get("fused") else {}
    chosen = {**_precision(tuning), **loading, **optimizer}
    return {name: value for name, value in chosen.items() if value != getattr(defaults, name)}


def _precision(tuning: Tuning) -> dict[str, Any]:
    name = mixed_precision(tuning)
    if name is None:
        return {}
    import torch

    has_bf16 = importlib.import_module("transformers.utils").is_torch_bf16_gpu_available
    return {name: True, "use_cpu": name == "bf16" and not (torch.cuda.is_available() or has_bf16())}
