"""The options of a DataLoader beside its number of workers: they were measured with that number, and follow it."""

from collections.abc import Mapping

from gputune import plugins
from gputune.facts import Facts
from gputune.recommend.standing import Stood
from gputune.settings import Choice, dataloader_workers, load
from gputune.settings._evidence import NOT_MEASURED, unmeasured

WORKERS = plugins.name_of(dataloader_workers)
OTHERS = tuple(f"dataloader_{option}" for option in ("persistent_workers", "prefetch_factor", "threads"))


def is_of_loading(name: str) -> bool:
    return name.startswith("dataloader_")


def with_workers(
    facts: Facts, workers: Choice, own: Mapping[str, Choice], stood: Mapping[str, Stood]
) -> tuple[dict[str, Choice], dict[str, Stood]]:
    """Return each setting's choice by this run alone, and what stands, as far as they belong to the final number of
    `workers`.

    Where this run alone would lead to another number, what it measured with that one says nothing; where the number
    that stood has fallen, what stood beside it falls too.
    """
    choices, standing = dict(own), dict(stood)
    for name in OTHERS:
        if own[WORKERS].value != workers.value:
            without = load(name).recommend(facts, ())
            choices[name] = unmeasured(without.value, NOT_MEASURED) if workers.value else without
        if name in standing and (WORKERS not in stood or stood[WORKERS].value != workers.value):
            del standing[name]
    return choices, standing
