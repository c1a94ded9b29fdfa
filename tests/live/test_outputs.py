"""Outputs as they would be without mixed precision and channels_last: types and what is untouched stay the same."""

import time
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import distributions

from gputune.knobs._outputs import Uncopied, changed, opaque, tensors
from gputune.knobs._restored import restored, usual

HALF, FULL = torch.bfloat16, torch.float32
Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Made:
    left: Any
    right: Any = None


@dataclass(frozen=True)
class Frozen:
    left: Any
    right: Any


class Named(OrderedDict[str, Any]):
    """As the outputs of transformers are."""


class Two(tuple[Any, Any]):
    """A tuple that is made of two arguments."""

    def __new__(cls, left: Any, right: Any) -> Any:
        return super().__new__(cls, (left, right))


class Marked(tuple[Any, ...]):
    extra: int


class Closed(dict[str, Any]):
    """A dict that nothing is put into."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("closed")


class Opaque:
    """Something of the user's own, which is not looked into."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside


def tensor(dtype: Any) -> Any:
    return torch.ones(2, dtype=dtype)


LEAVES = st.one_of(
    st.sampled_from([HALF, FULL, torch.float16, torch.int64, torch.bool]).map(tensor),
    st.none(), st.integers(), st.text(max_size=3), st.builds(Opaque, st.just(1)),
)  # fmt: skip
KEYS = st.text("abc", min_size=1, max_size=2)
OUTPUTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3).map(Named),
        st.builds(Pair, inner, inner),
        st.builds(Made, inner, inner),
        st.builds(Frozen, inner, inner),
    ),
    max_leaves=8,
)


def kept(output: Any) -> tuple[Any, list[Any]]:
    """An output, and what it holds, at any depth, as it is now."""
    holds = isinstance(output, dict | list | tuple | Made | Frozen)
    return output, [kept(one) for one in parts(output)] if holds else []


def alike(before: tuple[Any, list[Any]], after: Any) -> None:
    output, inside = before
    assert type(output) is type(after)
    if isinstance(output, torch.Tensor):
        assert after.dtype == (FULL if output.dtype == HALF else output.dtype)
        assert torch.equal(after, output.to(after.dtype))
    if not (isinstance(output, tuple | torch.Tensor) and holds_half(before)):
        assert after is output
    for left, right in zip(inside, parts(after) if inside else [], strict=True):
        alike(left, right)


def holds_half(before: tuple[Any, list[Any]]) -> bool:
    output, inside = before
    return (isinstance(output, torch.Tensor) and output.dtype == HALF) or any(map(holds_half, inside))


def parts(output: Any) -> list[Any]:
    if isinstance(output, dict):
        return [*output, *output.values()]
    return list(vars(output).values()) if isinstance(output, Made | Frozen) else list(output)


class TestDtype:
    @pytest.mark.slow
    @given(OUTPUTS)
    def test_at_any_depth_types_are_kept_and_what_is_untouched_is_the_same_object(self, output: Any) -> None:
        before = kept(output)
        alike(before, restored(output, HALF))

    @pytest.mark.slow
    @given(OUTPUTS)
    def test_twice_is_once(self, output: Any) -> None:
        once = restored(output, HALF)
        assert restored(once, HALF) is once

    @given(OUTPUTS)
    def test_without_a_dtype_nothing_changes(self, output: Any) -> None:
        assert restored(output, None) is output

    def test_an_input_or_an_attribute_that_is_returned_stays_the_same_object(self) -> None:
        batch = {"loss": tensor(HALF), "rest": [tensor(HALF)]}
        rest = batch["rest"]
        assert restored((batch, rest), HALF) == (batch, rest)
        assert batch["rest"] is rest
        assert [one.dtype for one in tensors(batch)] == [FULL, FULL]

    def test_attributes_stay_that_a_forward_has_given_to_what_it_returns(self) -> None:
        output, several = tensor(HALF), Marked((tensor(HALF),))
        output.scale, several.extra = 2.0, 7
        assert restored(output, HALF).scale == 2.0
        assert restored(several, HALF).extra == 7

    @pytest.mark.parametrize("output", [torch.ones(2), tensor(HALF), Marked(()), Named(), Made(1)])
    def test_tensors_in_attributes_of_outputs_are_restored(self, output: Any) -> None:
        output.extra = tensor(HALF)
        output.extra.before = before = tensor(HALF)
        before.before = output.extra
        assert any(one.dtype == HALF for one in tensors(output))
        new = restored(output, HALF)
        assert [one.dtype for one in tensors(new) if isinstance(one, torch.Tensor)][-1] == FULL
        assert new.extra.before is before  # which is left, as it may lead to all steps before

    def test_a_copy_leaves_the_attributes_of_what_was_copied(self) -> None:
        output = Named()
        output.extra = tensor(HALF)
        assert changed(output, lambda one: one.float()).extra.dtype == FULL
        assert output.extra.dtype == HALF

    def test_gradients_flow_through(self) -> None:
        leaf = torch.ones(2, dtype=HALF, requires_grad=True)
        restored([leaf * 2], HALF)[0].sum().backward()
        assert leaf.grad is not None

    def test_a_default_dict_keeps_its_default(self) -> None:
        output = restored(defaultdict(list, loss=tensor(HALF)), HALF)
        assert output["none"] == []

    def test_what_torch_returns_in_names_keeps_them(self) -> None:
        output = restored(torch.ones(2, 2, dtype=HALF).max(0), HALF)
        assert (output.values.dtype, output.indices.dtype) == (FULL, torch.int64)


class TestLayout:
    images = torch.ones(2, 3, 4, 4)

    def test_images_in_channels_last_become_contiguous(self) -> None:
        output = restored([self.images.to(memory_format=torch.channels_last)], None, inputs=())[0]
        assert output.is_contiguous()
        assert torch.equal(output, self.images)

    def test_the_programs_own_layout_stays_where_gputune_put_none_in(self) -> None:
        images = self.images.to(memory_format=torch.channels_last)
        assert restored(images, HALF) is images
        assert restored(images.to(HALF), HALF).is_contiguous(memory_format=torch.channels_last)

    @pytest.mark.parametrize(
        "one", [images, images.transpose(2, 3), torch.ones(2, 3, 4).mT, torch.ones(2, 1, 4, 4), torch.ones(1, 2, 3).mT]
    )
    def test_what_is_not_in_channels_last_is_the_same_object(self, one: Any) -> None:
        assert restored(one, None, inputs=()) is one

    @pytest.mark.parametrize(
        "view",
        [
            lambda y: y.chunk(2, 1)[1], lambda y: y[:, :, 1:-1, 1:-1], lambda y: y[:, ::2], lambda y: y.flatten(2),
            lambda y: y.unflatten(1, (4, 2)), lambda y: y[0], lambda y: y.unbind(0)[1], lambda y: y[:1].squeeze(0),
            lambda y: y.transpose(1, 2), lambda y: y.transpose(2, 3), lambda y: y.permute(2, 3, 0, 1),
            lambda y: y[..., 0], lambda y: y.diagonal(0, 2, 3), lambda y: y.unfold(2, 3, 1),
        ],
    )  # fmt: skip
    def test_a_view_of_what_is_in_channels_last_is_as_that_of_what_is_not(self, view: Any) -> None:
        leaf = torch.arange(480.0).reshape(2, 8, 5, 6).requires_grad_()
        plain, last = view(leaf * 1), view((leaf * 1).to(memory_format=torch.channels_last))
        output = restored([last], HALF, inputs=())[0]
        assert output.stride() == plain.stride() != last.stride()
        assert torch.equal(output, plain)
        output.sum().backward()
        gradient, leaf.grad = leaf.grad, None
        plain.sum().backward()
        assert torch.equal(gradient, leaf.grad)

    def test_a_view_in_half_precision_gets_both_at_once(self) -> None:
        images = self.images.to(HALF)
        output = restored(images.to(memory_format=torch.channels_last).flatten(2), HALF, inputs=())
        assert (output.dtype, output.stride()) == (FULL, images.flatten(2).stride())

    def test_a_slice_that_was_made_in_inference_mode_becomes_contiguous(self) -> None:
        with torch.inference_mode():
            left, _ = torch.ones(2, 8, 4, 4).to(memory_format=torch.channels_last).chunk(2, 1)
        assert restored(left, None, inputs=()).is_contiguous()

    @pytest.mark.parametrize(
        "view",
        [
            lambda y: y.permute(0, 2, 3, 1), lambda y: y.permute(0, 2, 3, 1).contiguous()[..., :4],
            lambda y: y.permute(0, 2, 3, 1).reshape(2, -1, 4).transpose(1, 2),
            lambda y: y.permute(0, 2, 3, 1).reshape(-1, 8).T, lambda y: y[:, :, None].expand(-1, -1, 3, -1, -1),
        ],
    )  # fmt: skip
    def test_a_view_that_may_plainly_be_one_of_a_copy_is_the_same_object(self, view: Any) -> None:
        one = view(torch.ones(2, 8, 4, 4).to(memory_format=torch.channels_last))
        assert restored(one, None, inputs=()) is one

    def test_a_view_stays_in_channels_last_as_the_inputs_are(self) -> None:
        images = self.images.to(memory_format=torch.channels_last)
        one = images.flatten(2)
        assert restored(one, None, inputs=(images,)) is one

    def test_a_view_of_a_parameter_is_returned_itself(self) -> None:
        view = torch.nn.Parameter(self.images.to(memory_format=torch.channels_last))[0]
        assert restored(view, None, inputs=()) is view

    def test_a_parameter_is_returned_itself(self) -> None:
        weight = torch.nn.Parameter(self.images.to(memory_format=torch.channels_last))
        assert restored([weight], HALF, inputs=())[0] is weight


@pytest.mark.parametrize("kind", [Two, lambda left, right: Closed(left=left, right=right)])
class TestUncopied:
    def test_its_layout_stays(self, kind: Any) -> None:
        output = kind(TestLayout.images.to(memory_format=torch.channels_last), 1)
        assert restored(output, HALF, inputs=()) is output

    def test_its_dtype_is_an_error_that_holds_the_whole_output(self, kind: Any) -> None:
        output = [kind(tensor(HALF), 1)]
        with pytest.raises(Uncopied) as raised:
            restored(output, HALF)
        assert raised.value.output is output


def test_tensors_finds_each_in_order() -> None:
    one, two, three, four = (torch.zeros(n) for n in range(4))
    found = tensors(([one, {"a": two}], Made(three), Pair(four, "text"), Opaque(one), None, Made))
    assert [len(each) for each in found] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "last", [torch.ones(1), torch.nn.Parameter(torch.ones(1)), [torch.ones(1)], Made(torch.ones(1))]
)
@pytest.mark.parametrize("kind", [list, tuple, lambda found: dict(enumerate(found))])
def test_tensors_finds_what_follows_many_numbers(kind: Any, last: Any) -> None:
    assert [len(one) for one in tensors(kind([*range(999), None, "text", last]))] == [1]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: distributions.Normal(x, x.exp()),
        lambda x: distributions.Categorical(logits=x),
        lambda x: distributions.Independent(distributions.Normal(x, 1.0), 1),
        lambda x: distributions.TransformedDistribution(distributions.Normal(x, 1.0), distributions.TanhTransform()),
    ],
)
def test_a_distribution_has_its_parameters_in_fp32(make: Any) -> None:
    logits = torch.linspace(-2, 2, 12, dtype=HALF).reshape(4, 3)
    found, plain = restored({"policy": make(logits)}, HALF)["policy"], make(logits.float())
    torch.manual_seed(0)
    sample = found.sample()
    torch.manual_seed(0)
    torch.testing.assert_close(sample, plain.sample(), rtol=0.05, atol=0.05)
    assert type(found) is type(plain)
    assert found.log_prob(sample).dtype == FULL


@pytest.mark.slow
@pytest.mark.timed
def test_many_numbers_are_looked_at_quickly() -> None:
    numbers = [[1] * 200 for _ in range(2000)]
    began = time.perf_counter()
    assert list(tensors(numbers)) == []
    assert restored(numbers, HALF, inputs=()) is numbers
    assert time.perf_counter() - began < 0.1


def test_what_was_made_in_inference_mode_becomes_usual() -> None:
    plain = tensor(FULL)
    with torch.inference_mode():
        made = {"left": [tensor(HALF)], "right": plain}
    found = usual(made)
    assert not found["left"][0].is_inference()
    assert found["left"][0].dtype == HALF
    assert found["right"] is plain


@pytest.mark.parametrize(
    ("output", "name"),
    [
        (tensor(FULL), None), ((tensor(FULL), None, "text", 1.0), None), ({"deep": [Made(1, tensor(FULL))]}, None),
        ([], None), (Opaque(tensor(FULL)), "Opaque"), ({"deep": (1, Opaque(2))}, "Opaque"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_into_has_a_name(output: Any, name: str | None) -> None:
    assert opaque(output) == name
