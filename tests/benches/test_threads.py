"""torch computes with no more threads than a bench has CPUs for itself."""

import pytest
import torch
from recorded import RecordedHost, facts_of

from gputune.benches._timing import free_cpus, own_threads
from gputune.facts import busy


@pytest.mark.slow
@pytest.mark.parametrize(("others", "cpus"), [(0.0, 16), (0.4, 16), (8.1, 8), (15.9, 1), (None, 16)])
def test_it_computes_with_what_others_leave(monkeypatch, others, cpus):
    monkeypatch.setattr(busy, "used_by_others", lambda before, after: others)
    assert free_cpus(facts_of().cpu, RecordedHost()) == cpus


def test_torch_computes_with_no_more_threads_than_there_are_cpus():
    before = torch.get_num_threads()
    with own_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with own_threads(1000):
        assert torch.get_num_threads() == before
