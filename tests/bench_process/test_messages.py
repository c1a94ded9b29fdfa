"""What one side encodes the other decodes, and nothing else."""

from dataclasses import replace

import pytest
from making import row
from recorded import facts_of

from gputune.bench_process import Batches, MatmulShape, UserDataset
from gputune.bench_process.messages import Activity, BenchRequest, Done, Raised, Ready, Start, decode
from gputune.facts.gap import Gap
from gputune.resources.messages import encode


@pytest.mark.parametrize(
    "message",
    [
        Start(device="cuda:0", facts=facts_of("nvidia-h200-x8")),
        BenchRequest(bench="gputune.benches.conv", seconds=4, budget="standard"),
        BenchRequest(
            bench="gputune.benches.conv",
            seconds=4.5,
            budget="quick",
            shapes=(MatmulShape(m=8, n=8, k=8, dtype="tf32"),),
            dataset=(UserDataset(path="train.py:data", step_ms=2.5),),
            batches=Batches(make="train.py:make", sizes=(1, 2), timed=True),
        ),
        Ready(),
        Activity(text="matmul\nbfloat16"),
        replace(row("conv", "throughput", 1.0, dtype="tf32"), conditions={"other_cpus": 0.1}),
        Gap(fact="bench.conv", reason="it was killed", cause="killed"),
        Raised(text="RuntimeError: no", cause=None),
        Done(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_arrives_as_it_was_sent(message):
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode(line) == message


@pytest.mark.parametrize(
    "line",
    [b"", b"nonsense", b"[]", b"{}", b'{"type": "Facts"}', b'{"type": ["Done"]}', b'{"type": "Activity"}',
     b'{"type": "Activity", "text": 3}', b'{"type": "Done", "more": 1}'],
)  # fmt: skip
def test_anything_else_is_refused(line):
    with pytest.raises(ValueError, match=r"."):
        decode(line)
