"""The command that measures again what is provisional names what it needs, and no more."""

from dataclasses import replace

import making
import pytest

from gputune.report import next_steps
from gputune.resources.printable import quoted

GIVEN = {"--shapes": "mine.txt", "--dataset": "data.py:train", "--batch-size": 64, "--fresh": False, "-o": None}


@pytest.mark.parametrize(
    ("bench", "given", "completes", "options"),
    [
        ("dataset", GIVEN, True, "--only dataset --dataset data.py:train --batch-size 64"),
        ("dataloader", GIVEN, True, "--only dataloader"),
        ("dataset", GIVEN, False, "--shapes mine.txt --dataset data.py:train --batch-size 64"),
        ("dataset", {"-o": "mine.yaml"}, True, "--only dataset --dataset FILE.py:CALLABLE -o mine.yaml"),
    ],
    ids=["named", "not waited for", "all of it", "of an earlier probe, to be named by the user"],
)
def test_a_dataset_is_named_where_it_is_what_is_waited_for(bench, given, completes, options):
    made = making.profile()
    waiting = replace(made.settings["dataloader_workers"], provisional=True, evidence=(bench,))
    made = replace(made, settings={**made.settings, "dataloader_workers": waiting})
    assert quoted(*next_steps.command(made, given, completes=completes)) == f"gputune probe {options}"


def test_nothing_is_offered_where_nothing_is_provisional():
    assert next_steps.command(making.profile(), GIVEN, completes=True) is None
