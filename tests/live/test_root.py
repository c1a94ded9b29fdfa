"""Which models are left alone, and why."""

from typing import Any

import pytest
import torch
from hands_on import rooted
from torch import nn

from gputune.live.root import is_ddp


def named(name: str, *bases: Any) -> Any:
    return type(name, bases, {})


DistributedDataParallel = named("DistributedDataParallel", nn.Module)


def wrapped(model: Any) -> Any:
    wrap = DistributedDataParallel()
    wrap.module = model
    return wrap


@pytest.mark.parametrize(
    "model", [nn.Linear(4, 4), wrapped(nn.Linear(4, 4)), nn.BatchNorm1d(4), nn.Sequential(nn.Embedding(4, 4))]
)
def test_a_plain_model_is_not(model: Any) -> None:
    assert rooted(model, torch.optim.AdamW(model.parameters())).left_alone() is None


def with_buffer(dtype: Any) -> Any:
    model = nn.Linear(4, 4)
    model.register_buffer("numbers", torch.zeros(2, dtype=dtype))
    return model


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (named("FullyShardedDataParallel", nn.Linear)(4, 4), "FullyShardedDataParallel holds the parameters in its"),
        (nn.Sequential(named("MyLayer", named("FSDPModule", nn.Linear))(4, 4)), "FSDPModule holds"),
        (nn.Sequential(named("DataParallel", nn.Linear)(4, 4)), "DataParallel holds"),
        (nn.Linear(4, 4).half(), "its parameters are float16"),
        (nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).bfloat16()), "its parameters are bfloat16"),
        (nn.Sequential(nn.Linear(4, 4).half(), nn.Linear(4, 4).double()), "its parameters are float16, float64"),
        (with_buffer(torch.complex64), "its parameters are complex64"),
        (nn.Linear(4, 4, device="meta"), "its parameters are on meta, and this was measured on cpu"),
    ],
)
def test_one_that_is_not_plain_is(model: Any, why: str) -> None:
    assert str(rooted(model).left_alone()).startswith(why)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float64])
def test_buffers_of_other_numbers_do_not_matter(dtype: Any) -> None:
    assert rooted(with_buffer(dtype)).left_alone() is None


def test_the_model_inside_ddp_has_the_name_and_the_kind() -> None:
    one = rooted(wrapped(nn.Linear(4, 4)))
    assert is_ddp(one.model)
    assert (one.name, one.family, type(one.inner)) == ("Linear", "mlp", nn.Linear)
    assert one.call is one.model._compiled_call_impl
