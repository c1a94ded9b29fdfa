"""The user's own dataset: how many workers and what else, and one clear line where it goes wrong."""

import pytest
from loaded import broken, children, measured, sorted_out

from gputune.benches import dataset as bench
from gputune.probing import recommending


def gaps(found):
    return [gap.reason for gap in sorted_out(found)[1]]


def rows(found):
    return [row for row in sorted_out(found)[0] if row.metric == "throughput"]


def choices(two_cpus, found):
    return recommending.choices(two_cpus, sorted_out(found)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Raises", "ValueError: cannot read sample of two lines (broken_datasets.py:25, in __getitem__)"),
        ("RaisesLate", "KeyError: "),
        ("Hangs", "no batch came within 1 s"),
        ("Killed", "a worker was killed by SIGKILL"),
        ("Exits", "a worker ended with exit code 3"),
        ("Crashes", "a worker was killed by"),
        ("unpicklable", "what is loaded cannot be sent to a worker that is not forked: Can't pickle local object"),
        ("unsendable", "TypeError: a batch cannot be sent from a worker to the training process: Can't pickle"),
        ("Uneven", "RuntimeError: "),
        ("Ends", "the dataset is empty"),
        ("raises_while_made", "raises_while_made() raised RuntimeError"),
    ],
)
def test_a_broken_dataset_is_one_clear_line_and_its_workers_are_gone(two_cpus, monkeypatch, name, says):
    if name == "Hangs":
        monkeypatch.setitem(bench.PATIENCE_SECONDS, "standard", 1.0)
    found = measured(two_cpus, broken(name))
    (reason,) = gaps(found)
    assert [gap.cause for gap in sorted_out(found)[1]] == ["killed" if name == "Killed" else None]
    assert reason.startswith(says) or says in reason
    assert "\n" not in reason
    assert not rows(found)
    assert not children()
    assert choices(two_cpus, found)["dataloader_workers"].value == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [("single", "an epoch is a single batch"), ("Undivided", "every worker yields the whole dataset")],
)
def test_a_single_sample_and_a_stream_that_its_workers_do_not_divide_get_none(two_cpus, name, reason):
    found = measured(two_cpus, broken(name), seconds=1.0)
    assert not gaps(found)
    chosen = choices(two_cpus, found)["dataloader_workers"]
    assert (chosen.value, chosen.evidence) == (0, ("dataset",))
    assert chosen.reason.startswith(reason)


@pytest.mark.slow
def test_what_can_be_loaded_in_workers_only_gets_some(two_cpus):
    found = measured(two_cpus, broken("OnlyInWorkers"), seconds=1.5)
    assert gaps(found)[0].startswith("0 workers: AttributeError: 'NoneType' object has no attribute 'id'")
    chosen = choices(two_cpus, found)["dataloader_workers"]
    assert chosen.value >= 1
    assert "in workers only" in chosen.reason
