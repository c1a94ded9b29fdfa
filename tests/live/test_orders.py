"""What a tune and a process of the program say to each other arrives as it was sent, and nothing else does."""

import json
import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.live import orders
from gputune.live.models import ModelKey
from gputune.live.orders import AnyOrder, Message
from gputune.live.records import Gradient, Output, Recorded
from gputune.resources.messages import decode, encode
from gputune.strict_types import convert

VALUES: dict[str, Any] = {"matmul_precision": "tf32", "compile": True, "omp_threads": 4}
ORDERS = [
    orders.FindObstacles(candidates=VALUES),
    orders.DescribeLoader(),
    orders.TimeBlock(steps=3, values=VALUES, workers=2, settle=1),
    orders.TraceSteps(steps=3),
    orders.CompareOutputs(values=VALUES, calls=20, explained=0.05),
    orders.Record(steps=100),
    orders.End(),
]
MESSAGES = [
    orders.Hello(pid=7, entry="train.py", torch="2.11.0", device="cuda", rank=1, world=8, local=4),
    orders.Found(
        trains=True, models=(ModelKey(class_name="Net", digest="0" * 16),), families=("mlp",), shapes=((8, 4), ()),
        images=False,
    ),
    orders.Obstacles(reasons={"channels_last": "it has no 2-d convolutions"}),
    orders.LoaderDescribed(batches=None, batch_bytes=4096, obstacle="the program gave num_workers="),
    orders.BlockTimed(seconds=0.04, peak_bytes=1 << 30, waited=0.01, compiled=1),
    orders.StepsTraced(seconds=(0.02, None)),
    orders.OutputsCompared(calls=20, error=0.003, rows=320, agreeing=320, failed="TypeError: no"),
    Recorded(
        losses=(1.0, None, math.inf), compared=3, gradients=(Gradient(2.0, (1.0, 2.0)),), steps=((0.0, 1.0, 2.0),),
        outputs=(Output(name="Net's output[1]", shape=(2, 1), is_whole=False, sample=(1.5, -math.inf), not_finite=1),),
        evaluates=True, unchecked=("the optimizer's step was not compared (LBFGS)",),
    ),
    orders.Done(),
    orders.Passed(),
    orders.OnlyCalls(),
    orders.CallsWithGradients(count=40),
    orders.Trains(),
    orders.Over(steps=250, at_data_end=True, may_train=True),
    orders.Raised(text="RuntimeError: no", out_of_memory=False),
]  # fmt: skip


def received(line: bytes | str) -> Any:
    return decode(line, Message, convert)


def test_there_is_an_example_of_every_type() -> None:
    assert [type(one) for one in ORDERS] == list(get_args(AnyOrder))
    assert {type(one) for one in MESSAGES} == set(get_args(Message))


@pytest.mark.parametrize("order", ORDERS, ids=lambda one: type(one).__name__)
def test_an_order_arrives_as_it_was_sent(order: Any) -> None:
    assert decode(encode(order), AnyOrder, lambda kind, fields: kind(**fields)) == order


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_a_message_arrives_as_it_was_sent(message: Any) -> None:
    line = encode(message)
    assert line.count(b"\n") == 1
    assert received(line) == message


def test_a_loss_that_is_no_number_arrives() -> None:
    recorded = Recorded(losses=(math.nan,), compared=1, gradients=(), steps=())
    assert math.isnan(received(encode(recorded)).losses[0])


NAMES = st.sampled_from(["type", *(name for kind in get_args(Message) for name in kind.__slots__)])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(), inner, max_size=4),
)


@given(PLAIN, st.sampled_from(get_args(Message)))
def test_whatever_else_a_program_sends_is_refused(plain: Any, kind: type) -> None:
    for one in (plain, {**(plain if isinstance(plain, dict) else {}), "type": kind.__name__}):
        try:
            message = received(json.dumps(one))
        except ValueError:
            continue
        assert isinstance(message, get_args(Message))


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, math.inf])
def test_a_block_that_took_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="above 0 and finite"):
        received(json.dumps({"type": "BlockTimed", "seconds": seconds, "peak_bytes": None}))
