"""Whether workers are kept from one epoch to the next, from only a few epochs."""

from dataclasses import replace
from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_persistent_workers import recommend

HOST = facts_of()
WORKERS = [
    row("dataloader", "throughput", rate, kind="decoding", workers=count) for count, rate in ((0, 100.0), (4, 380.0))
]


def short(kept: float, samples: int, epoch_seconds: float = 0.5) -> list[Any]:
    """A few epochs with kept workers at this rate, and with new ones at 100."""
    params = {"kind": "epochs", "workers": 4, "epoch_seconds": epoch_seconds}
    rates = {True: kept, False: 100.0}
    rows = [row("dataloader", "throughput", rates[keep], persistent_workers=keep, **params) for keep in rates]
    return [replace(one, samples=one.samples[:samples]) for one in rows]


def test_beside_a_long_epoch_a_few_starts_are_enough_to_say_that_nothing_is_gained() -> None:
    choice = recommend(HOST, WORKERS + short(100.5, 3, epoch_seconds=600.0))
    assert (choice.value, choice.gain, choice.evidence) == (False, None, ("dataloader",))
    assert choice.reason == "no gain: to start 4 workers is next to nothing beside an epoch of 600 s"


@pytest.mark.parametrize(("kept", "samples"), [(100.5, 2), (130.0, 3)])
def test_a_few_starts_say_nothing_else(kept: float, samples: int) -> None:
    choice = recommend(HOST, WORKERS + short(kept, samples))
    assert (choice.value, choice.reason) == (False, "too few samples in this run to tell")
