"""The key of a model: the same in every process and inside every wrapper, another one for another model."""

import re

import pytest
import torch
from torch import nn

from gputune.inject.models import DIGEST, ModelKey, key


def small(width: int = 4, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.Linear(3, width, bias=bias), nn.ReLU(), nn.Linear(width, 2))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = small()


class Around(nn.Module):
    """A model of the user's whose only child has the name of a wrapper's, beside a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.module = small()
        self.scale = nn.Parameter(torch.ones(1))


def test_it_is_the_class_and_16_digits_that_no_later_version_may_change() -> None:
    found = key(small())
    assert found == ModelKey(class_name="Sequential", digest="6ebadf9402ebce38")
    assert re.fullmatch(DIGEST, found.digest)


def test_values_devices_and_types_do_not_matter() -> None:
    assert key(small()) == key(small().half().eval()) == key(small().to("meta"))


def test_names_and_shapes_do() -> None:
    assert len({key(one) for one in (small(), small(5), small(bias=False), Net(), nn.ReLU())}) == 5


@pytest.mark.slow  # torch.compile imports for two seconds
def test_a_wrapper_is_looked_through() -> None:
    net = Net()
    parallel = nn.DataParallel(net)
    compiled = torch.compile(net)
    assert {key(one) for one in (parallel, compiled, torch.compile(parallel), nn.DataParallel(compiled))} == {key(net)}


def test_distributed_data_parallel_too() -> None:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert key(nn.parallel.DistributedDataParallel(net := Net())) == key(net)
    finally:
        torch.distributed.destroy_process_group()


def test_what_has_parameters_of_its_own_is_no_wrapper() -> None:
    assert key(Around()).class_name == "Around"


def test_a_parameter_that_has_no_shape_yet_is_no_fault() -> None:
    lazy = nn.LazyLinear(3)
    before = key(lazy)
    lazy(torch.zeros(1, 2))
    assert key(lazy).digest == key(nn.Linear(2, 3)).digest != before.digest


@pytest.mark.parametrize(
    "digest", ["", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0", "0123456789abcdef\n"]
)
def test_what_is_no_digest(digest: str) -> None:
    with pytest.raises(ValueError, match="16 hexadecimal digits in lower case"):
        ModelKey(class_name="Net", digest=digest)
