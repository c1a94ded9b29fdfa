"""The settings that may be turned on in a program's models and DataLoaders: a part of GPUTUNE_APPLY."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from .. import knobs
from ..knobs import Value

Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Arguments for DataLoaders that the program made without any about workers."""

    choices: Values
    """The values of the DataLoader's settings, by setting."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """The fields of `live.loading.MeasuredLoading`."""
    deterministic: bool = False
    """Only where the samples were seen to draw no random numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedProgram:
    """The settings tuned for one program, by the keys of its models."""

    entry: str
    models: tuple[tuple[str, str], ...]
    """Class names, and digests of the parameters' names and shapes."""
    settings: Values
    shapes: tuple[tuple[int, ...], ...] = ()
    """The shapes of the tensors that its models were called with."""
    world_size: int = 1
    trains: bool = True
    """Whether it trains; otherwise its calls without gradients were tuned."""
    loading: Loading | None = None
    unguarded: bool = False
    """Whether its loss, or its outputs, were not compared with FP32's."""
    dataset: str | None = None
    """The class of the dataset that its loading was tuned for; None where that is not known."""
    layers: tuple[Mapping[str, int], ...] = ()
    """For each model `models.layers_of` it; empty where that is not known."""
    torch: str | None = None
    """The version of torch that it was tuned with, if any of its settings depends on that."""

    def stale(self, torch: str) -> list[str]:
        """The settings that depend on torch, if they were measured with another version than this one."""
        if self.torch in (None, torch):
            return []
        return [name for name in self.settings if "torch" in knobs.load(name).DEPENDS]


def entry() -> str:
    """The name by which a tuned program knows its script: the file's, or the module's for `python -m`."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name.removesuffix(".__main__"))
    return Path(getattr(main, "__file__", None) or sys.argv[0]).name


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Values of code settings, already held against the machine and the limit on numerics."""

    device: str
    """The type of device on which they were measured, cuda or cpu."""
    general: Values = field(default_factory=dict)
    """For a model of no known kind."""
    families: Mapping[str, Values] = field(default_factory=dict)
    programs: tuple[TunedProgram, ...] = ()
    loading: Loading | None = None
    """For the DataLoaders of any program."""
    quiet: bool = False
    """Whether to say nothing of what was put in."""
    profile: str = ""
    """The name of the profile's file, for messages about its programs."""

    def __bool__(self) -> bool:
        return bool(self.general or self.families or self.programs or self.loading)

    @property
    def for_any(self) -> bool:
        return bool(self.general or self.families)

    @property
    def expected(self) -> list[str]:
        """The settings that may be turned on in some model's calls."""
        all_values = [self.general, *self.families.values(), *(one.settings for one in self.programs)]
        given = [(name, values.get(name)) for values in all_values for name in knobs.in_models()]
        return sorted({name for name, value in given if not knobs.is_default(knobs.load(name), value)})

    def program(self, models: Sequence[tuple[str, str]], *, trains: bool = True) -> TunedProgram | None:
        """The tuned program whose models are all among these; of several, the one with most models."""
        same = (one for one in self.programs if one.trains == trains)
        fitting = [one for one in same if one.models and set(one.models) <= set(models)]
        return max(fitting, key=lambda one: len(one.models), default=None)

    def by_family(self, family: str | None) -> Values:
        return self.families.get(family or "", self.general)

    @property
    def loading_programs(self) -> tuple[TunedProgram, ...]:
        """The tuned programs that have arguments for DataLoaders."""
        return tuple(one for one in self.programs if one.loading and one.models)

    @property
    def plain(self) -> dict[str, Any]:
        """For JSON, without what is empty."""
        programs = [_plain(one) for one in self.programs]
        return {name: value for name, value in {**asdict(self), "programs": programs}.items() if value}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Raises AttributeError, KeyError, TypeError or ValueError for what `plain` does not make."""
        families = {family: dict(values) for family, values in data.get("families", {}).items()}
        programs = tuple(_tuned(one) for one in data.get("programs", ()))
        changed = {"general": dict(data.get("general", {})), "families": families, "programs": programs}
        return cls(**{**data, **changed, "loading": _loading(data)})


def _plain(program: TunedProgram) -> dict[str, Any]:
    needed = ("entry", "models", "settings", "trains")
    return {name: value for name, value in asdict(program).items() if value or name in needed}


def _tuned(data: Mapping[str, Any]) -> TunedProgram:
    models = tuple((str(name), str(digest)) for name, digest in data["models"])
    shapes = tuple(tuple(map(int, shape)) for shape in data.get("shapes", ()))
    layers = tuple({str(kind): int(count) for kind, count in one.items()} for one in data.get("layers", ()))
    changed = {"models": models, "shapes": shapes, "layers": layers, "settings": dict(data["settings"])}
    return TunedProgram(**{**data, **changed, "loading": _loading(data)})


def _loading(data: Mapping[str, Any]) -> Loading | None:
    return Loading(**data["loading"]) if data.get("loading") else None


def speaks() -> bool:
    """Whether this process is the one of a job that tells: rank 0, or the first of several children."""
    import torch

    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return bool(distributed.get_rank() == 0)
    if "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    return multiprocessing.parent_process() is None or multiprocessing.current_process().name.endswith("-1")
