"""Arguments for DataLoaders that a program made without any about workers.

Only for a map-style dataset, with workers that are forked. None persist, since those change the order of samples from
the second epoch on. So do all workers, if the dataset draws torch's random numbers.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ..knobs import Value
from ..knobs.dataloader_prefetch_factor import AHEAD
from ..knobs.dataloader_workers import WORKERS
from ..resources.files import Files
from ..resources.room import room
from ..resources.sample_kind import draws_random_numbers, loads_in_child
from . import patches
from .advice import Advice, Loading, entry
from .applied import Applied, Reason, Why
from .loading import Load, MeasuredLoading, arguments, fitted, for_dataset, start_method
from .outcome import left

PIN = "dataloader_pin_memory"
SETTINGS = (WORKERS, AHEAD, PIN)
GIVEN = ("num_workers", "prefetch_factor", "multiprocessing_context", "worker_init_fn", "persistent_workers")
"""The arguments of DataLoader by which a program decides about workers itself."""


def follow_loaders(advice: Advice, files: Files, note: Callable[[Applied], None]) -> None:
    """Have every DataLoader of this process considered from now on. `note` gets what became of each setting."""

    def more(_: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        loading = advice.loading_of(entry())
        return _extra(given, loading, files, note) if loading else {}

    if advice.loads:
        patches.made_loaders(more)


def _extra(given: Mapping[str, Any], loading: Loading, files: Files, note: Callable[[Applied], None]) -> dict[str, Any]:
    if row := obstacle(given, loading):
        note(row)
        return {}
    choices, measured = loading.choices, MeasuredLoading(**loading.measured)
    load = for_dataset(Load.of(choices.get(WORKERS), choices.get(AHEAD)), measured, given.get("dataset"))
    if load.workers:
        load = fitted(load, measured, room(files))
    pin = bool(choices.get(PIN))
    extra = arguments(load, pin_memory=pin)
    values: dict[str, Value] = {WORKERS: load.workers, AHEAD: load.prefetch, PIN: pin}
    if "pin_memory" in given:
        del extra["pin_memory"], values[PIN]
        note(left(PIN, "the program gave pin_memory=", users=True))
    for name, value in values.items():
        if name in loading.choices:
            notes = load.notes.get(name, ())
            reasons: tuple[Why | str, ...] = (Reason.PUT_IN("DataLoader"), *notes)
            note(Applied(setting=name, after=value, status="applied", source="profile", reasons=reasons))
    return extra


def obstacle(given: Mapping[str, Any], loading: Loading) -> Applied | None:
    """The row that says why a DataLoader made with these arguments gets no workers; None where it gets some."""
    if mine := next((name for name in GIVEN if name in given), None):
        return left(WORKERS, f"the program gave {mine}=", users=True)
    why = _refusal(given.get("dataset"), given, loading)
    return left(WORKERS, why) if why else None


def _refusal(dataset: Any, given: Mapping[str, Any], loading: Loading) -> str | None:
    import torch

    if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__getitem__"):
        return "an IterableDataset would be repeated by every worker"
    if (method := start_method()) != "fork":
        return f"workers would be started by {method}, and only fork needs nothing of the script"
    if loading.deterministic and draws_random_numbers(dataset) is not False:
        return "its samples draw random numbers, which differ in workers"
    # Samples on a GPU, for one, cannot be had in a forked process.
    loads = loads_in_child(dataset, functools.partial(_batch, given))
    return None if loads else "a forked process could not load its first sample"


def _batch(given: Mapping[str, Any], sample: Any) -> Any:
    from torch.utils.data import default_collate, default_convert

    alone = given.get("batch_size", 1) is None and given.get("batch_sampler") is None
    collate = given.get("collate_fn") or (default_convert if alone else default_collate)
    return collate(sample if alone else [sample])
