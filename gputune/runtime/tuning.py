"""`gputune.apply`, and the `Tuning` it returns: what a training script uses of a profile."""

import operator
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from gputune import knobs
from gputune.host import Host
from gputune.knobs import Numerics, Value
from gputune.knobs.channels_last import has_volumes
from gputune.knobs.compile import compile_in_place
from gputune.knobs.dataloader_prefetch_factor import AHEAD
from gputune.knobs.dataloader_workers import WORKERS
from gputune.live import flags
from gputune.live.applied import Applied
from gputune.live.loading import Load, MeasuredLoading, arguments, fitted, for_dataset
from gputune.live.models import family, has_images
from gputune.profile import Profile, load
from gputune.resources.room import room
from gputune.runtime import deciding
from gputune.runtime.advising import measured_loading
from gputune.runtime.deciding import Line, Terms
from gputune.runtime.environment import limit
from gputune.runtime.in_process import apply_now, inject_now, rows_now
from gputune.runtime.launch import disabled
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.locate import AUTO, located
from gputune.runtime.rows import Rows


class Tuning:
    """A profile's choices for a script's lines. Where no choice applies here, each method returns torch's default.

    Until `prepare` has seen the model, and for a model of unknown kind, the profile's general choices apply.
    """

    def __init__(
        self,
        choices: Mapping[str, Value],
        families: Mapping[str, Mapping[str, Value]] | None = None,
        applied: Sequence[Applied] = (),
        measured: MeasuredLoading | None = None,
    ) -> None:
        self._choices = choices
        self._families = families or {}
        self._rows = tuple(applied)
        self._measured = measured or MeasuredLoading()
        self._used: dict[str, Value] = {}
        self._failed: dict[str, str] = {}
        self._load = Load()
        self.family: str | None = None
        """The kind of network that `prepare` saw: convnet, transformer, recurrent, mlp, or None for any other."""

    def __repr__(self) -> str:
        return f"Tuning, family {self.family}\n{self.applied}"

    @property
    def applied(self) -> Rows:
        """The current state of every setting: applied, kept as the user had it, changed later by the program, skipped,
        or failed. For a setting that needs a line in the script, it is what the latest such line used. A tuple of
        `Applied`, which prints as a table.
        """
        now = rows_now()
        return Rows(self._updated(row, now.get(row.setting)) for row in self._rows)

    def autocast(self) -> Any:
        """`torch.autocast` in the profile's mixed-precision dtype; a null context where the profile has none."""
        import torch

        dtype = self.use("amp_dtype")
        return torch.autocast(_device(), dtype=getattr(torch, dtype)) if isinstance(dtype, str) else nullcontext()

    def grad_scaler(self) -> Any:
        """A torch GradScaler, enabled only for float16, in which small gradients would underflow."""
        import torch

        return torch.amp.GradScaler(_device(), enabled=self.choice("amp_dtype") == "float16")

    def prepare(self, model: Any) -> Any:
        """The model, in channels_last (if it has 2-d convolutions) and compiled in place where the profile chose that.

        Sets `family`. Call it before creating the optimizer: `optimizer_kwargs` and `autocast` depend on it.
        """
        import torch

        self.family = family(model)
        if has_images(model) and not has_volumes(model) and self.use("channels_last") is True:
            model = model.to(memory_format=torch.channels_last)
        if self.use("compile") is True:
            compile_in_place(model, lambda why: self._failed.update(compile=f"torch.compile failed: {why}"))
        return model

    def optimizer_kwargs(self) -> dict[str, Any]:
        """Arguments for torch's SGD, Adam and AdamW: `fused` where it was faster."""
        return {"fused": True} if self.use("fused_optimizer") is True else {}

    def dataloader_kwargs(self, dataset: Any = None) -> dict[str, Any]:
        """Arguments for torch's DataLoader, adapted to the CPUs and shared memory that this process has now.

        The number of workers is scaled from the CPUs that were measured to those available here (affinity, quota and
        scheduler grant, shared by the local ranks). If the user's own dataset was measured, prefetched batches are kept
        within the free part of /dev/shm, assuming batches of the measured size.

        Given a `dataset`, one with a single sample gets no workers. Unless the user's own dataset was measured, a few
        samples are loaded in a child process (usually 0.1 s), and the number of workers is the best for synthetic
        samples of that kind. An IterableDataset, or one whose samples raise, keeps the general choice. `applied` then
        says what differs from the profile and why.
        """
        load = Load.of(self.use(WORKERS), self.use(AHEAD))
        if dataset is not None and WORKERS in self._choices:
            load = for_dataset(load, self._measured, dataset)
        if load.workers:
            load = fitted(load, self._measured, room(Host()))
        self._load = load
        return arguments(load, pin_memory=bool(self.use("dataloader_pin_memory")))

    def pad(self, n: int, dtype: Any = None) -> int:
        """`n`, a dimension of the model (features, vocabulary), rounded up to a multiple that runs at full speed.

        `dtype` is a torch.dtype or its name, by default the one in which matmuls run with this profile. float32 means
        TF32 where the profile chose that. Raises ValueError unless `n` is a positive integer and `dtype` a dtype or its
        name.
        """
        size, computed = _positive(n), self._computed(dtype)
        multiples = self.use("dimension_multiple")
        multiple = multiples.get(computed, 1) if isinstance(multiples, dict) else 1
        return -(-size // multiple) * multiple

    def _updated(self, row: Applied, flag: Applied | None) -> Applied:
        name, setting = row.setting, knobs.load(row.setting)
        if setting.PHASE != "code":
            return flag if flag and flag.after != row.after and row.status != "skipped" else row
        if flag and name not in self._used:
            return flag  # what was put into the models, and not by the script
        notes = self._load.notes.get(name, ())
        line = Line(
            value=self._load.values[name] if notes else self._used.get(name, self.choice(name)),
            used=name in self._used,
            family=self.family if name in self._families.get(self.family or "", {}) else None,
            failure=self._failed.get(name),
            notes=notes,
        )
        return deciding.in_code(setting, row, line)

    def use(self, name: str) -> Value:
        """The choice for one setting, which `applied` reports as used by the script from now on."""
        self._used[name] = self.choice(name)
        return self._used[name]

    def choice(self, name: str) -> Value:
        """The choice for one setting, for the kind of network that `prepare` saw; None where none applies."""
        return {**self._choices, **self._families.get(self.family or "", {})}.get(name)

    def _computed(self, dtype: Any) -> str:
        """The name of the precision in which a matmul of `dtype` computes, by default under this tuning's autocast."""
        name = _dtype_name(dtype) if dtype is not None else self.choice("amp_dtype") or "float32"
        return "tf32" if name == "float32" and self.choice("matmul_precision") == "tf32" else str(name)


def apply(
    profile: str | Path | Profile,
    *,
    ignore_fingerprint: bool = False,
    numerics: Numerics | None = None,
    inject: bool = False,
) -> Tuning:
    """As `gputune.apply`. Raises UsageError for an unknown level, too; GPUTUNE_DISABLE=1 leaves all as it is."""
    if disabled(os.environ):
        every = knobs.all_knobs().values()
        return Tuning({}, applied=[flags.skipped(setting, "switched off by GPUTUNE_DISABLE=1") for setting in every])
    terms = Terms(ignore_fingerprint=ignore_fingerprint, numerics=limit(numerics, os.environ), inject=inject)
    if not isinstance(profile, Profile):
        terms = terms if str(profile) == AUTO else terms.but(profile=Path(profile).name)
        profile = located(local_fingerprint(Host()), os.environ) if str(profile) == AUTO else load(profile)
    tuning = Tuning(*apply_now(profile, terms), measured_loading(profile))
    if inject:
        inject_now(profile, terms)
    return tuning


@cache
def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _positive(n: Any) -> int:
    try:
        size = operator.index(n)
    except TypeError:
        size = 0
    if size < 1 or isinstance(n, bool):
        raise ValueError(f"a positive integer is expected, not {n!r}")
    return size


def _dtype_name(dtype: Any) -> str:
    import torch

    name = str(dtype).removeprefix("torch.")
    if name != "tf32" and not isinstance(getattr(torch, name, None), torch.dtype):
        raise ValueError(f"{dtype!r} is neither a torch.dtype nor the name of one")
    return name
