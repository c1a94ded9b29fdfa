"""The user's own dataset: how many workers and what else, and one clear line where it goes wrong."""

import pytest
from loaded import broken, children, measured

from gputune import recommend
from gputune.benches import dataset as bench
from gputune.facts.gap import Gap
from gputune.measurement import Measurement


def gaps(found):
    return [one.reason for one in found if isinstance(one, Gap)]


def rows(found, metric="throughput"):
    return [one for one in found if isinstance(one, Measurement) and one.metric == metric]


def choices(two_cpus, found):
    return recommend.choices(two_cpus, [one for one in found if isinstance(one, Measurement)])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", "ValueError: cannot read sample of two lines (broken_datasets.py:25, in __getitem__)"),
        ("raises_late", "KeyError: "),
        ("hangs", "no batch came within 1 s"),
        ("killed", "a worker was killed by SIGKILL"),
        ("exits", "a worker ended with exit code 3"),
        ("crashes", "a worker was killed by"),
        ("unpicklable", "what is loaded cannot be sent to a worker that is not forked: Can't pickle local object"),
        ("unsendable", "TypeError: a batch cannot be sent from a worker to the training process: Can't pickle"),
        ("uneven", "RuntimeError: "),
        ("empty", "the dataset is empty: its length is 0"),
        ("empty_loader", "the dataset is empty: its length is 0"),
        ("ends", "the dataset is empty"),
        ("number", "returned 'int'"),
        ("raises_while_made", "raises_while_made() raised RuntimeError"),
        ("leaves", "leaves() called sys.exit(2)"),
    ],
)
def test_a_broken_dataset_is_one_clear_line_and_its_workers_are_gone(two_cpus, monkeypatch, name, says):
    if name == "hangs":
        monkeypatch.setitem(bench.PATIENCE_SECONDS, "standard", 1.0)
    found = measured(two_cpus, broken(name))
    (reason,) = gaps(found)
    assert [gap.cause for gap in found if isinstance(gap, Gap)] == ["killed" if name == "killed" else None]
    assert reason.startswith(says) or says in reason
    assert "\n" not in reason
    assert not rows(found)
    assert not children()
    assert choices(two_cpus, found)["dataloader_workers"].value == 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [("single", "an epoch is a single batch"), ("undivided", "every worker yields the whole dataset")],
)
def test_a_single_sample_and_a_stream_that_its_workers_do_not_divide_get_none(two_cpus, name, reason):
    found = measured(two_cpus, broken(name), seconds=1.0)
    assert not gaps(found)
    chosen = choices(two_cpus, found)["dataloader_workers"]
    assert (chosen.value, chosen.evidence) == (0, ("dataset",))
    assert chosen.reason.startswith(reason)


@pytest.mark.slow
def test_what_can_be_loaded_in_workers_only_gets_some(two_cpus):
    found = measured(two_cpus, broken("only_in_workers"), seconds=1.5)
    assert gaps(found)[0].startswith("0 workers: AttributeError: 'NoneType' object has no attribute 'id'")
    chosen = choices(two_cpus, found)["dataloader_workers"]
    assert chosen.value >= 1
    assert "in workers only" in chosen.reason


@pytest.mark.slow
def test_the_batch_size_that_is_asked_for(two_cpus):
    (size,) = rows(measured(two_cpus, broken("dictionaries"), seconds=1.0, batch_size=7), "batch_bytes")
    assert size.params["batch"] == 7
