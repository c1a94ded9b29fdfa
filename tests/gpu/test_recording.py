"""What the guard records of outputs on a real GPU."""

import pytest
import torch
from torch import nn

from gputune.live.records import outputs_of

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("size", [16, 3000])
def test_the_same_elements_as_on_the_cpu_are_recorded(size):
    logits = torch.randn(size, 50)
    given = {"logits": logits, "turned": logits.T, "labels": logits.argmax(-1), "mask": logits > 0}
    there = {name: tensor.cuda() for name, tensor in given.items()}
    there["turned"] = there["logits"].T
    model = nn.Linear(2, 2)
    assert list(outputs_of(model, there)) == list(outputs_of(model, given))


def test_large_outputs_take_little_memory_even_in_another_order_of_memory():
    logits = torch.zeros(64, 50_000, 256, device="cuda").transpose(0, 2)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    (found,) = outputs_of(nn.Linear(2, 2), logits)
    assert len(found.sample) == 1024
    assert torch.cuda.max_memory_allocated() - before < 256 << 20


def test_a_graph_that_the_program_captures_stays_whole():
    model, x = nn.Linear(64, 64).cuda(), torch.randn(8, 64, device="cuda")
    model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
        with pytest.raises(RuntimeError, match="a CUDA graph is captured"):
            list(outputs_of(model, y))
    graph.replay()
    torch.testing.assert_close(y, model(x))
