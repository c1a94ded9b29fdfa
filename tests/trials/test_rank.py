"""The connection to a rank."""

import socket
from collections.abc import Iterator

import pytest

from gputune.live.orders import Raised
from gputune.resources.messages import encode
from gputune.trials.rank import Rank

RAISED = Raised(text="RuntimeError", out_of_memory=False)


@pytest.fixture
def ends() -> Iterator[tuple[Rank, socket.socket]]:
    ours, its = socket.socketpair()
    with ours, its:
        yield Rank(ours), its


def test_a_silent_rank_has_not_ended(ends: tuple[Rank, socket.socket]) -> None:
    assert not ends[0].has_ended


def test_nor_has_one_whose_last_word_was_not_heard_yet(ends: tuple[Rank, socket.socket]) -> None:
    rank, its = ends
    its.sendall(encode(RAISED))
    its.close()
    assert not rank.has_ended
    assert list(rank.hear()) == [RAISED]
    assert rank.has_ended


def test_one_that_was_killed_has(ends: tuple[Rank, socket.socket]) -> None:
    ends[1].close()
    assert ends[0].has_ended
