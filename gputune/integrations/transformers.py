"""Arguments for transformers' Trainer: `TrainingArguments(output_dir="out", **training_arguments(tuning))`.

The model is the script's: `model = tuning.prepare(model)` before the Trainer is made.

- `torch_compile` is not given: with it transformers turns TF32 on for the whole process where the GPU has it, unless in fp16. A
  profile that refused TF32 would be overruled, and from torch 2.9 on, where only torch's newer interface is told, torch's older
  getters would raise RuntimeError, which Inductor and Lightning ask. `tuning.prepare` compiles.
- `tf32` is not given either: it is set the same way, and false takes TF32 from convolutions too, which have it by torch's default.
  Left out it touches nothing.
- `worker_init_fn` of `tuning.dataloader_kwargs` has no counterpart, since the Trainer sets its own, which seeds: workers that are
  not forked compute with one thread each, torch's default, and not with the number in the profile.

Source: transformers 5.23.0, training_args.py, trainer.py and utils/import_utils.py.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gputune.integrations.accelerate import mixed_precision

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

_LOADING = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")


def training_arguments(tuning: Tuning, dataset: Any = None) -> dict[str, Any]:
    """`bf16` or `fp16`, the DataLoader's `dataloader_*` and `optim`, as far as they differ from transformers' own defaults.

    With `dataset` the workers are those for its kind of samples (see `Tuning.dataloader_kwargs`): of tokens that lie in memory
    already, most want none. transformers asks for `use_cpu` along with bf16 where there is no GPU, so it is given there. The
    Trainer takes the DataLoader's arguments for evaluation too.
    """
    defaults = importlib.import_module("transformers").TrainingArguments
    chosen = {**_precision(tuning), **_loading(tuning, dataset), **_optimizer(tuning)}
    return {name: value for name, value in chosen.items() if value != getattr(defaults, name)}


def _precision(tuning: Tuning) -> dict[str, Any]:
    """On a CPU fp16 runs in FP32, as Accelerate has it."""
    name = mixed_precision(tuning)
    if name is None:
        return {}
    return {name: True, "use_cpu": name == "bf16" and not _has_accelerator()}


def _has_accelerator() -> bool:
    import torch

    available = importlib.import_module("transformers.utils").is_torch_bf16_gpu_available
    return bool(torch.cuda.is_available() or available())


def _loading(tuning: Tuning, dataset: Any) -> dict[str, Any]:
    """Without what is false or none there. Memory that is not pinned is torch's default and not transformers', which stays."""
    made = tuning.dataloader_kwargs(dataset)
    return {f"dataloader_{name}": made[name] for name in _LOADING if made.get(name)}


def _optimizer(tuning: Tuning) -> dict[str, Any]:
    """From torch 2.8 on the fused one is transformers' own default, and stays that without a choice."""
    return {"optim": "adamw_torch_fused"} if tuning.optimizer_kwargs().get("fused") else {}
