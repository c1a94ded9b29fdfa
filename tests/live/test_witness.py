"""What a program is seen to use by itself, by the functions of torch that it passes through."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import checkpoint

from gputune.live.call import call_of
from gputune.live.watch import Witness

X = torch.ones(2, 4, requires_grad=True)
LAYER = nn.Linear(4, 4)
BEFORE = torch.autocast.__enter__


@pytest.fixture
def witness() -> Iterator[Witness]:
    witness = Witness("cpu")
    witness.start()
    yield witness
    witness.stop()


def autocast() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        LAYER(X)


@torch.autocast("cpu", dtype=torch.bfloat16)
def decorated() -> None:
    LAYER(X)


def elsewhere() -> None:
    with torch.autocast("cpu", enabled=False), torch.autocast("xpu", dtype=torch.float16):
        LAYER(X)


def checkpointed(**options: Any) -> Callable[[], None]:
    return lambda: checkpoint.checkpoint(LAYER, X, **options).sum().backward()


SELECTIVE = {
    "use_reentrant": False,
    "context_fn": lambda: checkpoint.create_selective_checkpoint_contexts([torch.ops.aten.mm.default]),
}


@pytest.mark.parametrize(
    ("use", "seen"),
    [
        (lambda: LAYER(X), set()),
        (autocast, {"autocast"}),
        (decorated, {"autocast"}),
        (elsewhere, set()),
        pytest.param(checkpointed(use_reentrant=True), {"reentrant checkpointing"}, marks=pytest.mark.slow),
        pytest.param(checkpointed(use_reentrant=False), set(), marks=pytest.mark.slow),
        pytest.param(checkpointed(**SELECTIVE), {"selective checkpointing"}, marks=pytest.mark.slow),
    ],
)
def test_what_is_used_is_seen(witness: Witness, use: Callable[[], None], seen: set[str]) -> None:
    use()
    assert witness.seen == seen


@pytest.mark.slow
@pytest.mark.parametrize("reentrant", [False, True])
def test_the_autocast_that_was_put_in_is_not_the_programs(witness: Witness, reentrant: bool) -> None:
    """Checkpointing enters it once more during backward."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return checkpoint.checkpoint(self.layer, x, use_reentrant=reentrant)

    model = Net()
    call_of(model, "cpu").dtype = torch.bfloat16
    model(X).sum().backward()
    assert "autocast" not in witness.seen


def test_nothing_is_seen_and_nothing_patched_after_stop() -> None:
    places = [(torch.autocast, "__enter__"), (checkpoint.CheckpointFunction, "forward")]
    before = [vars(holder)[name] for holder, name in places]
    witness = Witness("cpu")
    witness.start()
    assert all(vars(holder)[name] is not one for (holder, name), one in zip(places, before, strict=True))
    witness.stop()
    witness.stop()
    autocast()
    assert witness.seen == set()
    assert [vars(holder)[name] for holder, name in places] == before


def test_somebody_elses_patch_on_top_stays(witness: Witness) -> None:
    ours = torch.autocast.__enter__

    def theirs(self: Any) -> Any:
        return ours(self)

    torch.autocast.__enter__ = theirs
    witness.stop()
    assert torch.autocast.__enter__ is theirs
    autocast()
    torch.autocast.__enter__ = BEFORE
