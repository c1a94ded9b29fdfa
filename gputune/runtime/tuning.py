"""What a training script takes from a profile, and the call that applies one in a running process."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from gputune import settings
from gputune.host import Host
from gputune.inject import decision
from gputune.inject.applied import Applied, Reason, Why
from gputune.inject.decision import Line, Terms
from gputune.inject.loading import SAMPLES, WORKERS, Load, Measured, arguments, fitted, for_dataset
from gputune.profile import Profile, load
from gputune.resources.room import room
from gputune.runtime.compiled import compile_in_place
from gputune.runtime.family import family
from gputune.runtime.in_process import apply_now, rows_now
from gputune.runtime.launch import disabled
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.locate import AUTO, chosen
from gputune.runtime.numerics import limit
from gputune.settings import Numerics, Value


class Tuning:
    """What a script takes from a profile; without a choice that holds here, each answer is torch's default.

    Before `prepare` has seen the model, and for a model of no known kind, the profile's general choices hold.
    """

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
        self._rows = tuple(applied)
        self._measured = measured or Measured()
        self._taken: dict[str, Value] = {}
        self._failed: dict[str, Why] = {}
        self._load = Load()
        self.family = None

    @property
    def applied(self) -> tuple[Applied, ...]:
        """What became of every setting, as it is now: applied, kept as the user had it, changed later by the program, skipped, or
        failed. Where a setting takes a line in the script, what the last such line gave.
        """
        flags = rows_now()
        return tuple(self._now(row, flags.get(row.setting)) for row in self._rows)

    def autocast(self) -> Any:
        """`torch.autocast` in the profile's mixed-precision dtype; where that is none, a context that does nothing."""
        import torch

        dtype = self.take("amp_dtype")
        return torch.autocast(_device(), dtype=getattr(torch, dtype)) if isinstance(dtype, str) else nullcontext()

    def grad_scaler(self) -> Any:
        """A GradScaler of torch: enabled for float16, whose small gradients would vanish, else passing everything through."""
        import torch

        return torch.amp.GradScaler(_device(), enabled=self.value("amp_dtype") == "float16")

    def prepare(self, model: Any) -> Any:
        """The model, with 2-d convolutions in channels_last and calls compiled where that pays; `family` then names its kind.

        Call it before the optimizer is made: `optimizer_kwargs` and `autocast` then answer for this kind of network.
        """
        import torch

        self.family = family(model)
        if _has_images(model) and self.take("channels_last") is True:
            model = model.to(memory_format=torch.channels_last)
        if self.take("compile") is True:
            compile_in_place(model, lambda why: self._failed.update(compile=Reason.COMPILE_FAILED(why)))
        return model

    def optimizer_kwargs(self) -> dict[str, Any]:
        """Arguments for torch's SGD, Adam, AdamW and Adagrad: `fused` where that pays, for parameters that are on the GPU already."""
        return {"fused": True} if self.take("fused_optimizer") is True else {}

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
            workers=_count(self.take("dataloader_workers")) or 0,
            prefetch=_count(self.take("dataloader_prefetch_factor")),
            threads=_count(self.take("dataloader_threads")),
        )
        if dataset is not None and WORKERS in self._choices:
            load = for_dataset(load, self._measured, dataset)
        if load.workers:
            load = fitted(load, self._measured, room(Host()))
        self._load = load
        return arguments(
            load,
            pin_memory=bool(self.take("dataloader_pin_memory")),
            persistent_workers=bool(self.take("dataloader_persistent_workers")),
        )

    def pad(self, n: int, dtype: Any = None) -> int:
        """The size to give a model's dimension of `n` (features, vocabulary): the next multiple that runs at full speed.

        `dtype` is a torch.dtype or its name, by default the one that the profile makes matmuls run in. FP32 stands for
        TF32 where the profile chose that. Raises ValueError for an `n` that is no positive whole number and for a name
        that is no dtype's.
        """
        size, computed = _positive(n), self._computed(dtype)
        multiples = self.take("dimension_multiple")
        multiple = multiples.get(computed, 1) if isinstance(multiples, dict) else 1
        return -(-size // multiple) * multiple

    def _now(self, row: Applied, flag: Applied | None) -> Applied:
        name, setting = row.setting, settings.load(row.setting)
        if setting.PHASE != "code":
            return flag if flag and flag.after != row.after and row.status != "skipped" else row
        notes = self._load.notes.get(name, ())
        line = Line(
            value=self._load.values[name] if notes else self._taken.get(name, self.value(name)),
            used=name in self._taken,
            family=self.family if name in self._families.get(self.family or "", {}) else None,
            failure=self._failed.get(name),
            notes=notes,
        )
        return decision.in_code(setting, row, line)

    def take(self, name: str) -> Value:
        """The value of one setting for a line of the script that uses it now, which `applied` then says."""
        self._taken[name] = self.value(name)
        return self._taken[name]

    def value(self, name: str) -> Value:
        """What holds of one setting, for the kind of network that `prepare` saw; None where there is no choice that holds here."""
        own = self._families.get(self.family or "", {})
        return own[name] if name in own else self._choices.get(name)

    def _computed(self, dtype: Any) -> str:
        """The name of what a matmul of `dtype` computes in."""
        name = _dtype_name(dtype) if dtype is not None else self.value("amp_dtype") or "float32"
        return "tf32" if name == "float32" and self.value("matmul_precision") == "tf32" else str(name)


def apply(
    profile: str | Path | Profile, *, ignore_fingerprint: bool = False, numerics: Numerics | None = None
) -> Tuning:
    """Set what a running process still can of a profile, and return what the script itself takes from it.

    `profile` is a path, or `auto` as for `gputune apply auto`, except that nothing is measured. What the user set, by an exported
    variable or a flag that is no longer at torch's default, stays. What was measured on another machine is skipped, unless
    `ignore_fingerprint`, and so is what changes results further than `numerics` (exact, rounding, tf32, mixed) or GPUTUNE_NUMERICS
    allows. With GPUTUNE_DISABLE=1 nothing is read or set. Raises ProfileError for a file that is missing, unreadable or not
    valid, and UsageError for a level that is none.
    """
    if disabled(os.environ):
        every = settings.all_settings().values()
        return Tuning({}, applied=[decision.skipped(setting, Reason.DISABLED()) for setting in every])
    terms = Terms(ignore_fingerprint=ignore_fingerprint, numerics=limit(numerics, os.environ))
    known = profile if isinstance(profile, Profile) else load(_path(profile))
    return Tuning(*apply_now(known, terms), loading_of(known))


def loading_of(profile: Profile) -> Measured:
    """What a profile knows of loading that `Tuning.dataloader_kwargs` needs."""
    own = [row for row in profile.measurements if row.bench == "dataset"]
    general = profile.settings[WORKERS].value if WORKERS in profile.settings else None
    cpus = profile.fingerprint.cpu_budget
    # With a step to feed, or with so many workers that they must have waited, more CPUs would bear no more of them.
    fed = any("step_ms" in row.params for row in own) or (isinstance(general, int) and cpus and general > 2 * cpus)
    return Measured(
        cpu_budget=cpus,
        workers_by_kind={
            kind: value
            for kind in SAMPLES
            if isinstance(value := getattr(profile.families.get(kind, {}).get(WORKERS), "value", None), int)
        },
        own_dataset=any(row.metric == "throughput" for row in own),
        cpus_bound=not fed,
        batch_bytes=int(max((max(row.samples) for row in own if row.metric == "batch_bytes"), default=0)),
    )


def _path(profile: str | Path) -> str | Path:
    return chosen(local_fingerprint(Host()), os.environ) if str(profile) == AUTO else profile


@cache
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
