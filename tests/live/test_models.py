"""The key of a model, the same in every process and inside every wrapper, and the kind of network that it is."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from gputune.live.models import DIGEST, MOST_KINDS, ModelKey, existing, family, key, layers_of


def small(width: int = 4, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.Linear(3, width, bias=bias), nn.ReLU(), nn.Linear(width, 2))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = small()


class Sought(Net): ...


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


class TestLayers:
    def test_each_kind_is_counted_by_its_own_parameters_wherever_it_stands(self) -> None:
        assert sorted(layers_of(small()).values()) == [1, 1]
        assert layers_of(nn.Sequential(small(), nn.ReLU(), small())) == dict.fromkeys(layers_of(small()), 2)
        assert layers_of(nn.DataParallel(small())) == layers_of(small())

    def test_a_wider_layer_is_another_kind(self) -> None:
        assert not layers_of(small(5)).keys() & layers_of(small()).keys()

    def test_a_thousand_layers_take_no_more_than_their_kinds(self) -> None:
        assert list(layers_of(nn.Sequential(*(nn.Linear(3, 3) for _ in range(1000)))).values()) == [1000]
        assert layers_of(nn.Sequential(*(nn.Linear(width, 1) for width in range(1, 2 + MOST_KINDS)))) == {}

    @pytest.mark.parametrize("layers", [{"0": 1}, {"000G": 1}, {"0000": 0}, {f"{n:04x}": 1 for n in range(129)}])
    def test_others_are_refused(self, layers: dict[str, int]) -> None:
        with pytest.raises(ValueError, match="layers: "):
            ModelKey(class_name="Net", digest="0" * 16, layers=layers)

    def test_they_are_no_part_of_what_a_model_is_recognised_by(self) -> None:
        assert ModelKey(class_name="Net", digest="0" * 16, layers={"0000": 1}) == ModelKey(
            class_name="Net", digest="0" * 16
        )


class TestExisting:
    def test_models_of_these_names_wherever_they_stand(self) -> None:
        around = nn.ModuleList([Sought(), nn.DataParallel(small())])
        assert existing({"Sought"}) == {key(Sought()).identity}
        assert key(small()).identity in existing({"Sequential", "Sought"})
        assert existing({"NoSuchModel"}) == set()
        del around

    def test_one_in_the_making_is_passed_over(self) -> None:
        model, broken = Sought(), Sought.__new__(Sought)
        assert existing({"Sought"}) == {key(model).identity}
        del broken


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


class LlamaAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(8, 8)


class Raw(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.weight = nn.Parameter(torch.zeros(2, 2))


CASES: list[tuple[str | None, Any]] = [
    ("convnet", nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))),
    ("convnet", nn.Conv1d(3, 8, 3)),
    ("convnet", nn.Sequential(nn.Sequential(nn.Conv3d(3, 8, 3)))),
    ("convnet", nn.ConvTranspose2d(3, 8, 3)),
    ("convnet", nn.ModuleList([nn.Conv1d(3, 8, 3), nn.GRU(8, 8)])),
    ("transformer", nn.MultiheadAttention(8, 2)),
    ("transformer", nn.TransformerEncoderLayer(8, 2, 16)),
    ("transformer", nn.ModuleList([nn.Conv2d(3, 8, 16, 16), LlamaAttention()])),
    ("transformer", nn.ModuleList([nn.Embedding(8, 8), LlamaAttention(), nn.LSTM(8, 8)])),
    ("recurrent", nn.ModuleList([nn.Embedding(8, 8), nn.LSTM(8, 8), nn.Linear(8, 2)])),
    ("recurrent", nn.GRU(8, 8)),
    ("recurrent", nn.RNN(8, 8)),
    ("mlp", nn.Linear(8, 8)),
    (
        "mlp",
        nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.LayerNorm(8), nn.Dropout(), nn.Linear(8, 2)),
    ),
    (None, nn.Sequential(nn.Embedding(8, 8), nn.Linear(8, 2))),
    (None, Raw()),
    (None, nn.ReLU()),
    (None, nn.BatchNorm1d(8)),
    (None, nn.Sequential()),
]


@pytest.mark.parametrize(("kind", "model"), CASES)
def test_family(kind: str | None, model: Any) -> None:
    assert family(model) == kind
