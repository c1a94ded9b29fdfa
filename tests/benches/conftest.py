"""Benches set torch's flags as they go, in a process of their own; here they are put back."""

import gc
from dataclasses import replace

import pytest

from gputune import facts
from gputune.host import Host


@pytest.fixture(autouse=True, scope="session")
def _what_is_loaded_is_no_garbage():
    import torch  # noqa: F401 - so that it is there to be frozen

    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def this_machine():
    return facts.read(Host())


@pytest.fixture(scope="session")
def two_cpus(this_machine):
    return replace(this_machine, cpu=replace(this_machine.cpu, budget=min(2, this_machine.cpu.budget)))


@pytest.fixture(autouse=True)
def _flags_put_back():
    import torch

    from gputune.knobs import _tf32

    matmul, cudnn, search = _tf32.matmul(), _tf32.cudnn(), torch.backends.cudnn.benchmark
    yield
    _tf32.set_matmul(matmul)
    _tf32.set_cudnn(cudnn)
    torch.backends.cudnn.benchmark = search


@pytest.fixture
def one_thread():
    from gputune.benches._timing import own_threads

    with own_threads(1):
        yield


BENCHES = ("_training_groups", "attention", "conv", "cpu_threads", "matmul_alignment", "matmul_shapes", "precision")


@pytest.fixture
def twelve_rounds(monkeypatch):
    from gputune.benches._timing import rate

    def measured(context, arms, seconds, metric, *_):
        for number in range(12 * len(arms)):
            arm = arms[number % len(arms)]
            arm.samples.append(rate(context, arm))
        return [metric.row_of(context, arm) for arm in arms]

    for name in BENCHES:
        monkeypatch.setattr(f"gputune.benches.{name}.interleave", measured)
    return measured
