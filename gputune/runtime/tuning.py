"""What a training script takes from a profile, and the call that applies one in a running process."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gputune import settings
from gputune.host import Host
from gputune.profile import Profile, load
from gputune.runtime.applied import DISABLED, Applied, skipped
from gputune.runtime.compiled import compile_in_place
from gputune.runtime.family import family
from gputune.runtime.in_process import decide
from gputune.runtime.launch import disabled
from gputune.runtime.loading import Load, Measured, arguments, fitted, for_dataset, room, told
from gputune.settings import Value


class Tuning:
    """What a script takes from a profile; without a choice that holds here, each answer is torch's default.

    Before `prepare` has seen the model, and for a model of no known kind, the profile's general choices hold.
    """

    applied: tuple[Applied, ...]
    """What became of every setting: applied now, kept as the user had it, skipped, or failed. Of the DataLoader's, what
    `dataloader_kwargs` last gave."""
    family: str | None
    """The kind of network that `prepare` saw: convnet, transformer, recurrent or mlp."""

    def __init__(
        self,
        choices: Mapping[str, Value],
        families: Mapping[str, Mapping[str, Value]] | None = None,
        applied: Sequence[Applied] = (),
        measured: Measured | None = None,
    ) -> None:
        self._choices = choices
        self._families = families or {}
        self._rows = self.applied = tuple(applied)
        self._measured = measured or Measured()
        self.family = None

    def autocast(self) -> Any:
        """`torch.autocast` in the profile's mixed-precision dtype; where that is none, the context changes nothing."""
        import torch

        device, dtype = _device(), self._value("amp_dtype")
        if isinstance(dtype, str):
            return torch.autocast(device, dtype=getattr(torch, dtype))
        return torch.autocast(device, dtype=torch.get_autocast_dtype(device), enabled=torch.is_autocast_enabled(device))

    def grad_scaler(self) -> Any:
        """A GradScaler of torch: enabled for float16, whose small gradients would vanish, else passing everything through."""
        import torch

        return torch.amp.GradScaler(_device(), enabled=self._value("amp_dtype") == "float16")

    def prepare(self, model: Any) -> Any:
        """The model, with 2-d convolutions in channels_last and calls compiled where that pays; `family` then names its kind.

        Call it before the optimizer is made: `optimizer_kwargs` and `autocast` then answer for this kind of network.
        """
        import torch

        self.family = family(model)
        if self._value("channels_last") is True and _has_images(model):
            model = model.to(memory_format=torch.channels_last)
        if self._value("compile") is True:
            compile_in_place(model)
        return model

    def optimizer_kwargs(self) -> dict[str, Any]:
        """Arguments for torch's SGD, Adam, AdamW and Adagrad: `fused` where that pays, for parameters that are on the GPU already."""
        return {"fused": True} if self._value("fused_optimizer") is True else {}

    def dataloader_kwargs(self, dataset: Any = None) -> dict[str, Any]:
        """Arguments for torch's DataLoader, for the CPUs and the shared memory that this process has now.

        Workers that were measured with other CPUs are scaled to those here: affinity, quota, the scheduler's grant, shared by the
        local ranks. Where the user's own dataset was measured, its batches in flight are kept within what /dev/shm has free.
        With `dataset`, one of a single sample gets no workers; where none of the user's own was measured, a few of its samples are
        taken in a child process (0.1 s, mostly), and the workers are those that were best for synthetic samples of that kind.
        An IterableDataset, and one whose samples raise, keeps the general choice. `applied` then says what is not as it was
        chosen. The batches are taken to be of the size that was measured; a `worker_init_fn` may be among the arguments.
        """
        load = Load(
            workers=_count(self._value("dataloader_workers")) or 0,
            prefetch=_count(self._value("dataloader_prefetch_factor")),
            threads=_count(self._value("dataloader_threads")),
        )
        if dataset is not None and "dataloader_workers" in self._choices:
            load = for_dataset(load, self._measured, dataset)
        if load.workers:
            load = fitted(load, self._measured, room(Host()))
        self.applied = told(self._rows, load)
        return arguments(
            load,
            pin_memory=bool(self._value("dataloader_pin_memory")),
            persistent_workers=bool(self._value("dataloader_persistent_workers")),
        )

    def pad(self, n: int, dtype: Any = None) -> int:
        """The size to give a model's dimension of `n` (features, vocabulary): the next multiple that runs at full speed.

        `dtype` is a torch.dtype or its name, by default the one that the profile makes matmuls run in. FP32 stands for
        TF32 where the profile chose that. Raises ValueError for an `n` that is no positive whole number and for a name
        that is no dtype's.
        """
        size, computed = _positive(n), self._computed(dtype)
        multiples = self._value("dimension_multiple")
        multiple = multiples.get(computed, 1) if isinstance(multiples, dict) else 1
        return -(-size // multiple) * multiple

    def _value(self, name: str) -> Value:
        own = self._families.get(self.family or "", {})
        return own[name] if name in own else self._choices.get(name)

    def _computed(self, dtype: Any) -> str:
        """The name of what a matmul of `dtype` computes in."""
        name = _dtype_name(dtype) if dtype is not None else self._value("amp_dtype") or "float32"
        return "tf32" if name == "float32" and self._value("matmul_precision") == "tf32" else str(name)


def apply(profile: str | Path | Profile, *, ignore_fingerprint: bool = False) -> Tuning:
    """Set what a running process still can of a profile, and return what the script itself takes from it.

    What the user set, by an exported variable or a flag that is no longer at torch's default, stays. What was measured on
    another machine is skipped, unless `ignore_fingerprint`. With GPUTUNE_DISABLE=1 nothing is read or set. Raises
    ProfileError for a file that is missing, unreadable or not valid.
    """
    if disabled(os.environ):
        return Tuning({}, applied=[skipped(name, DISABLED) for name in settings.names()])
    known = profile if isinstance(profile, Profile) else load(profile)
    return Tuning(*decide(known, ignore_fingerprint), Measured.of(known))


def _device() -> str:
    """Where the script computes: on a GPU if torch has one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _has_images(model: Any) -> bool:
    """Whether a model has 2-d convolutions, and no tensor of five dimensions, for which channels_last is an error."""
    import torch

    tensors = [*model.parameters(), *model.buffers()]
    return any(isinstance(layer, torch.nn.Conv2d) for layer in model.modules()) and all(
        tensor.dim() != 5 for tensor in tensors
    )


def _count(value: Value) -> int | None:
    return value if isinstance(value, int) else None


def _positive(n: Any) -> int:
    try:
        size = operator.index(n)
    except TypeError:
        size = 0
    if size < 1 or isinstance(n, bool):
        raise ValueError(f"a positive whole number is expected, not {n!r}")
    return size


def _dtype_name(dtype: Any) -> str:
    import torch

    name = str(dtype).removeprefix("torch.")
    if name != "tf32" and not isinstance(getattr(torch, name, None), torch.dtype):
        raise ValueError(f"{dtype!r} is neither a torch.dtype nor the name of one")
    return name
