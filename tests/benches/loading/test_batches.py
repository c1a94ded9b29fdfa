"""The description of a batch: its bytes in shared memory, and whether two batches are alike."""

from collections import namedtuple

import pytest
import torch

from gputune.benches.loading.user_dataset import PAGE, Described, describe

Pair = namedtuple("Pair", "left right")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "pages"),
    [
        (torch.zeros(1024), 1),
        (torch.zeros(1025), 2),
        ({"a": torch.zeros(1024), "b": [torch.zeros(1), "text"]}, 2),
        (Pair(torch.zeros(1), (torch.zeros(1), 3)), 2),
        (["a", "b"], 0),
        ({}, 0),
    ],
)
def test_the_bytes_of_its_tensors_in_whole_pages(batch, pages):
    assert describe(batch).shm_bytes == pages * PAGE


def test_tensors_of_one_storage_pass_once_and_whole():
    whole = torch.zeros(10 * 1024)
    assert describe([whole[:1024], whole[1024:2048]]).shm_bytes == 10 * PAGE


def test_alike_batches_are_told_from_others():
    one, same, other = ([torch.full((4,), value), "x"] for value in (1, 1, 2))
    assert describe(one).digest == describe(same).digest != describe(other).digest
    assert describe(["x"]).digest != describe(["y"]).digest


def test_a_batch_that_cannot_be_sent():
    with pytest.raises(TypeError, match="a batch cannot be sent from a worker to the training process"):
        describe([lambda: None])


def test_a_worker_sends_the_description_of_what_the_users_function_collates():
    assert Described(torch.stack)([torch.zeros(1024), torch.zeros(1024)]).shm_bytes == 2 * PAGE
