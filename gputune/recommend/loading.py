"""A DataLoader's `prefetch_factor`: it was chosen for a number of workers, and follows it."""

from collections.abc import Mapping

from gputune import plugins
from gputune.facts import Facts
from gputune.recommend.standing import Stood
from gputune.settings import Choice, dataloader_prefetch_factor, dataloader_workers

WORKERS, AHEAD = plugins.name_of(dataloader_workers), plugins.name_of(dataloader_prefetch_factor)


def is_of_loading(name: str) -> bool:
    return name.startswith("dataloader_")


def with_workers(
    facts: Facts, workers: Choice, own: Mapping[str, Choice], stood: Mapping[str, Stood]
) -> tuple[dict[str, Choice], dict[str, Stood]]:
    """Return each setting's choice by this run alone, and what stands, as far as they belong to the final number of
    `workers`.

    Where this run alone would lead to another number, its prefetch_factor says nothing about that one; where the number
    that stood has fallen, the prefetch_factor that stood with it falls too.
    """
    choices, standing = dict(own), dict(stood)
    if own[WORKERS].value != workers.value:
        choices[AHEAD] = dataloader_prefetch_factor.recommend(facts, ())
    if AHEAD in standing and (WORKERS not in stood or stood[WORKERS].value != workers.value):
        del standing[AHEAD]
    return choices, standing
