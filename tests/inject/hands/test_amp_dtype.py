"""Mixed precision, put into a model and taken out."""

from typing import Any

import pytest
import torch
from hands_on import mlp, rooted

from gputune.inject.hands import amp_dtype


def test_bfloat16_goes_in_and_out() -> None:
    root = rooted(mlp())
    assert amp_dtype.obstacle(root, "bfloat16") is None
    assert amp_dtype.put_in(root, "bfloat16") == "bfloat16"
    assert (root.call.dtype, root.call.cache) == (torch.bfloat16, True)
    amp_dtype.take_out(root)
    assert root.call.dtype is None


def test_bfloat16_takes_the_place_of_float16_which_would_need_a_loss_scaler() -> None:
    root = rooted(mlp())
    assert amp_dtype.put_in(root, "float16") == "bfloat16"


def test_reentrant_checkpointing_keeps_no_casts() -> None:
    root = rooted(mlp(), sights={"reentrant checkpointing"})
    assert amp_dtype.obstacle(root, "bfloat16") is None
    amp_dtype.put_in(root, "bfloat16")
    assert root.call.cache is False


@pytest.mark.parametrize(
    ("seen", "sights", "why", "users"),
    [
        ({}, {"autocast"}, "the program uses autocast or half precision itself", True),
        ({"half": True}, set(), "the program uses autocast or half precision itself", True),
        ({}, {"selective checkpointing"}, "it uses selective checkpointing", False),
        ({"functions": ["A", "B"]}, set(), "A, B: an autograd.Function that may not bear autocast", False),
    ],
)
def test_what_keeps_it_out(seen: dict[str, Any], sights: set[Any], why: str, users: bool) -> None:
    obstacle = amp_dtype.obstacle(rooted(mlp(), sights=sights, **seen), "bfloat16")
    assert obstacle is not None
    assert str(obstacle.why).startswith(why)
    assert obstacle.users is users


def test_a_gpu_without_bfloat16_would_need_a_loss_scaler(monkeypatch: pytest.MonkeyPatch) -> None:
    root = rooted(mlp(), device="cuda")
    for supported in (True, False):
        monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation, supported=supported: supported)
        assert (amp_dtype.obstacle(root, "float16") is None) is supported
