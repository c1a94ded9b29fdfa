"""What every GPU of a node does at the same time: matmuls after a load, then copies inside its memory."""

import pytest
from loaded import on_cpu

from gputune.benches import side_by_side


@pytest.fixture
def rows(monkeypatch):
    for name, value in {"SIDE": 256, "COPIED_BYTES": 1 << 20, "LOAD_SECONDS": 0.05, "COPY_LOAD_SECONDS": 0.05}.items():
        monkeypatch.setattr(side_by_side, name, value)
    said = []
    context = on_cpu("quick", 6, say=said.append)
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
