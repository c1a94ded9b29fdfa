"""The command that measures again what is provisional names what it needs, and no more."""

from dataclasses import replace

import making
import pytest

from gputune.report import next_steps
from gputune.resources.printable import quoted

GIVEN = {"--shapes": "mine.txt", "--dataset": "data.py:train", "--batch-size": 64, "--fresh": False, "-o": None}


@pytest.mark.parametrize(
    ("bench", "options"),
    [
        ("dataset", "--only dataset --dataset data.py:train --batch-size 64"),
        ("dataloader", "--only dataloader"),
    ],
)
def test_a_dataset_is_named_where_it_is_what_is_waited_for(bench, options):
    made = making.profile()
    waiting = replace(made.settings["dataloader_workers"], provisional=True, evidence=(bench,))
    made = replace(made, settings={**made.settings, "dataloader_workers": waiting})
    assert quoted(*next_steps.command(made, GIVEN, completes=True)) == f"gputune probe {options}"
    whole = "gputune probe --shapes mine.txt --dataset data.py:train --batch-size 64"
    assert quoted(*next_steps.command(made, GIVEN, completes=False)) == whole


def test_a_dataset_whose_rows_are_of_an_earlier_probe_is_to_be_named_by_the_user():
    made = making.profile()
    waiting = replace(made.settings["dataloader_workers"], provisional=True, evidence=("dataset",))
    made = replace(made, settings={**made.settings, "dataloader_workers": waiting})
    offered = quoted(*next_steps.command(made, {"-o": "mine.yaml"}, completes=True))
    assert offered == "gputune probe --only dataset --dataset FILE.py:CALLABLE -o mine.yaml"


def test_nothing_is_offered_where_nothing_is_provisional():
    assert next_steps.command(making.profile(), GIVEN, completes=True) is None
