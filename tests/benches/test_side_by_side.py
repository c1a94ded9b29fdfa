"""What every GPU of a node does at the same time: matmuls after a load, then copies inside its memory."""

import pytest
from recorded import facts_of

from gputune.bench_process import Context
from gputune.benches import side_by_side


@pytest.fixture
def rows(monkeypatch):
    """A CPU stands in for the GPU, with smaller ones."""
    for name, value in {"SIDE": 256, "COPIED_BYTES": 1 << 20, "LOAD_SECONDS": 0.05, "COPY_LOAD_SECONDS": 0.05}.items():
        monkeypatch.setattr(side_by_side, name, value)
    said = []
    context = Context(device="cpu", facts=facts_of("cpu-only"), seconds=6, budget="quick", say=said.append)
    found = list(side_by_side.measure(context))
    assert said == ["matmul", "bandwidth"]
    return found


@pytest.mark.slow
def test_both_metrics_are_of_12_blocks(rows):
    assert [(row.bench, row.metric, row.unit, len(row.samples)) for row in rows] == [
        ("side_by_side", "matmul", "TFLOP/s", 12),
        ("side_by_side", "bandwidth", "GB/s", 12),
    ]
    assert rows[0].params["side"] == 256
