"""Arguments for DataLoaders that a program made without any about workers.

Only for a map-style dataset, with workers that are forked. None persist, since those change the order of samples from
the second epoch on. So do all workers, if the dataset draws torch's random numbers.

A loader is often made before the models that tell which program this is, and asked for batches after them. So all is
decided when it makes an iterator, and holds for that iterator: the loader itself stays as the program made it.
"""

import functools
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..knobs import Value, given
from ..knobs.dataloader_prefetch_factor import AHEAD, PREFETCH
from ..knobs.dataloader_workers import WORKERS
from ..resources.files import Files
from ..resources.room import room
from ..resources.sample_kind import draws_random_numbers, why_not_in_workers
from . import loader_patches
from .advice import Advice, Loading, TunedProgram, entry
from .applied import Applied, Reason, Why
from .loading import Load, MeasuredLoading, arguments, fitted, for_dataset, innermost_sampler, start_method
from .models import existing
from .outcome import left

PIN = "dataloader_pin_memory"
SETTINGS = (WORKERS, AHEAD, PIN)
GIVEN = ("num_workers", "prefetch_factor", "multiprocessing_context", "worker_init_fn", "persistent_workers")
"""The arguments of DataLoader by which a program decides about workers itself."""
LONGEST_NAME = 255
MOST_LOOKS = 8
"""How often the models of a process are looked for, 4 to 27 ms each: a program that makes an iterator for each batch
must not pay for that each time."""


class Arguments:
    """The names of the arguments that the program gave each DataLoader, from `follow` on."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[Any, frozenset[str]] = weakref.WeakKeyDictionary()

    def follow(self) -> None:
        loader_patches.loader_made(self._note)

    def names(self, loader: Any) -> frozenset[str] | None:
        """None for a copy, and for a loader that was made earlier."""
        return self._names.get(loader)

    @property
    def loaders(self) -> list[Any]:
        """Those that still exist."""
        return list(self._names)

    def _note(self, loader: Any, given: dict[str, Any]) -> None:
        names = frozenset(given)
        if names.issuperset(GIVEN):  # as a framework gives them, that makes a loader anew from the program's
            names = next((self._names[one] for one in self.loaders if _is_made_from(given, one)), names)
        self._names[loader] = names


def _is_made_from(given: dict[str, Any], loader: Any) -> bool:
    own = vars(loader)
    return own.get("dataset") is given.get("dataset") and all(getattr(loader, one) == given[one] for one in GIVEN)


class LoaderSettings:
    """Gives the DataLoaders of this process what is advised for them. `note` gets what became of each setting: what one
    loader got, and what is said of it, is not withdrawn by another.
    """

    def __init__(self, advice: Advice, files: Files, note: Callable[[Applied], None]) -> None:
        self._advice, self._files, self._tell = advice, files, note
        self._arguments = Arguments()
        self._decided: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._running: list[TunedProgram] = []
        """The tuned programs of whose models this process has had all."""
        self._looks = MOST_LOOKS
        self._applied: dict[str, Applied] = {}

    def follow(self) -> None:
        if self._advice.loading or self._advice.loading_programs:
            self._note(left(WORKERS, Reason.NO_LOADER()))
            self._arguments.follow()
            loader_patches.loader_iterated(self._values)

    def _values(self, loader: Any) -> dict[str, Any]:
        """What the loader's next iterator is made with."""
        if loader not in self._decided:
            loading = self._loading(loader.dataset)
            if loading is None:
                return {}  # until the model is made
            self._decided[loader] = self._extra(loader, loading)
        return {} if loader.num_workers else self._decided[loader]

    def _loading(self, dataset: Any) -> Loading | None:
        self._look()
        name = dataset_class(dataset)
        fitting = [one for one in self._running if one.dataset in (None, name)]
        best = max(fitting, key=lambda one: (one.entry == entry(), len(one.models)), default=None)
        if best is None and self._advice.loading is None and self._running:
            self._note(left(WORKERS, f"tuned for a dataset {self._running[0].dataset}, this is {name}"))
        return best.loading if best else self._advice.loading

    def _look(self) -> None:
        programs = self._advice.loading_programs
        if self._looks and len(self._running) < len(programs):
            self._looks -= 1
            found = existing({name for one in programs for name, _ in one.models})
            self._running += [one for one in programs if one not in self._running and found.issuperset(one.models)]

    def _extra(self, loader: Any, loading: Loading) -> dict[str, Any]:
        names = self._arguments.names(loader)
        if row := obstacle(loader, names, loading):
            self._note(row)
            return {}
        choices, measured = loading.choices, MeasuredLoading(**loading.measured)
        load = for_dataset(Load.of(choices.get(WORKERS), choices.get(AHEAD)), measured, loader.dataset)
        if load.workers:
            load = fitted(load, measured, room(self._files))
        pin = bool(choices.get(PIN))
        extra = arguments(load, pin_memory=pin)
        if load.workers and load.prefetch is None:
            extra["prefetch_factor"] = PREFETCH  # what DataLoader makes of None when it is made
        values: dict[str, Value] = {WORKERS: load.workers, AHEAD: load.prefetch, PIN: pin}
        if row := _pinning_obstacle(loader, names or frozenset(), pin):
            del extra["pin_memory"], values[PIN]
            self._note(row)
        notes = dict(load.notes)
        if load.workers and draws_random_numbers(loader.dataset):
            notes[WORKERS] = (*notes.get(WORKERS, ()), "its samples draw other random numbers there")
        for name, value in values.items():
            if name in loading.choices:
                reasons: tuple[Why | str, ...] = (Reason.PUT_IN("DataLoader"), *notes.get(name, ()))
                self._note(Applied(setting=name, after=value, status="applied", source="profile", reasons=reasons))
        return extra

    def _note(self, row: Applied) -> None:
        before = self._applied.get(row.setting)
        if before and row.status != "applied":
            return
        if before:
            row = replace(row, reasons=tuple(dict.fromkeys((*before.reasons, *row.reasons))))
        if row.status == "applied":
            self._applied[row.setting] = row
        self._tell(row)


def dataset_class(dataset: Any) -> str:
    """The name of the class that loads a dataset's samples: that of a Subset's own dataset, and those of all datasets
    of a ConcatDataset, in at most `LONGEST_NAME` characters.
    """
    from torch.utils.data import ConcatDataset, Subset

    if isinstance(dataset, Subset):
        return dataset_class(dataset.dataset)
    if isinstance(dataset, ConcatDataset):
        return " + ".join(sorted({dataset_class(one) for one in dataset.datasets}))[:LONGEST_NAME]
    return type(dataset).__name__[:LONGEST_NAME]


def obstacle(loader: Any, names: frozenset[str] | None, loading: Loading) -> Applied | None:
    """The row that says why a DataLoader, made with arguments of these names, gets no workers; None if it gets some."""
    if names is None:
        return left(WORKERS, "the DataLoader is a copy, or was made before gputune.apply")
    if mine := next((name for name in GIVEN if name in names), None):
        return left(WORKERS, given(mine, getattr(loader, mine)), users=True)
    if loader.num_workers:
        return left(WORKERS, "the program set num_workers", users=True)
    why = _refusal(loader, loading)
    return left(WORKERS, why) if why else None


def _pinning_obstacle(loader: Any, names: frozenset[str], pin: bool) -> Applied | None:
    import torch

    if "pin_memory" in names:
        return left(PIN, given("pin_memory", loader.pin_memory), users=True)
    # Where GPUs are hidden from this process; torch would warn.
    return left(PIN, "torch sees no GPU in this process") if pin and not torch.cuda.is_available() else None


def _refusal(loader: Any, loading: Loading) -> str | None:
    import torch

    dataset = loader.dataset
    if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__getitem__"):
        return "an IterableDataset would be repeated by every worker"
    if (method := start_method()) != "fork":
        return f"workers would be started by {method}, and only fork needs nothing of the script"
    if why := _ordering_obstacle(loader):
        return why
    if why := why_not_in_workers(dataset, functools.partial(_batch, loader), loader.collate_fn):
        return why
    if loading.deterministic and draws_random_numbers(dataset) is not False:
        return "its samples draw random numbers, which differ in workers"
    return None


def _ordering_obstacle(loader: Any) -> str | None:
    """Workers are told the samples ahead of the loop. So a sampler may draw and look only when an epoch begins."""
    from torch.utils import data

    sampler = innermost_sampler(loader)
    if type(sampler) is data.RandomSampler and sampler.generator is not None:
        once = not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
        return None if once else "its sampler draws from the program's generator during an epoch"
    own = (data.SequentialSampler, data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)
    if type(sampler) in (*own, data.DistributedSampler):
        return None
    return "its sampler is the program's own, and workers would ask it ahead of the loop"


def _batch(loader: Any, index: int) -> Any:
    dataset = loader.dataset
    if loader.batch_sampler is None:
        return loader.collate_fn(dataset[index])
    several = getattr(dataset, "__getitems__", None)  # as torch asks for a batch
    return loader.collate_fn(several([index]) if several else [dataset[index]])
