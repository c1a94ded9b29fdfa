"""Whole optimizer steps of four reference networks: precision, memory format, fused optimizer, compile, cuDNN's search.

The networks are a multilayer perceptron (PyTorch's mixed-precision recipe), a ResNet-style convnet, a decoder
transformer and an LSTM. Each is measured in two groups: every precision in both memory formats, and, on the best of
these, every combination of the other options. In the thorough budget an accuracy guard compares final losses,
torch.compile and cuDNN's own search take part.
"""

import gc
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from gputune.advice import _training
from gputune.advice._training_rows import combination_of, precision_of
from gputune.bench_process import Context
from gputune.benches import _training_groups
from gputune.benches._errors import first_sentence, or_shortage, out_of_memory
from gputune.benches._networks import NETWORKS, Size
from gputune.benches._timing import free_cpus, own_threads, shared_out
from gputune.benches._training_groups import Found, fact_of
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement

SECONDS = {"cuda": {"standard": 20.5, "thorough": 240}, "cpu": {"standard": 13, "thorough": 120}}
RANK = 3
IMPORTS = ("torch._dynamo",)
"""Every optimizer of torch imports it with its first step."""

SHARES = {"mlp": 1.5, "convnet": 3.4, "transformer": 2.3, "recurrent": 2.0}
"""How the seconds are divided: the convnet is measured in two memory formats."""
PRECISIONS_SHARE, OPTIONS_SHARE = 0.52, 0.22
"""The parts of a network's seconds in which its two groups are measured; the rest goes into making them ready."""
GUARD_SHARE = 0.5
"""The accuracy guard's part of a network's seconds. Its trainings cannot be shortened: they run whole or not at all."""
CACHE = "TORCHINDUCTOR_CACHE_DIR"
SMALLEST_BATCH = 2


def measure(context: Context) -> Iterator[Found]:
    names = [name for name in NETWORKS if context.budget == "thorough" or name != "recurrent"]
    end = time.monotonic() + context.seconds
    threads = nullcontext() if context.cuda else own_threads(free_cpus(context.facts.cpu, Host()))
    with threads, _empty_compile_cache():
        for name, seconds in shared_out(names, end - time.monotonic(), SHARES.__getitem__):
            yield from _network(context, name, seconds)


def _network(context: Context, name: str, seconds: float) -> Iterator[Found]:
    """A network's rows, each as soon as it is measured, so that a later failure loses none of them."""
    context.say(f"{name}: precision")
    size, found = _at_a_batch_that_fits(context, name, seconds * PRECISIONS_SHARE)
    yield from found
    rows = [row for row in found if isinstance(row, Measurement)]
    combinations = [combination_of(row.params) for row in rows]
    precisions = list(dict.fromkeys(precision_of(one) for one in combinations if one is not None))
    if context.budget == "thorough" and context.cuda and rows:
        losses = _training_groups.final_losses(context, name, size, precisions, seconds * GUARD_SHARE)
        for row in _kept(context, name, losses):
            rows += [row] if isinstance(row, Measurement) else []
            yield row
    best = _training.first_best(rows, name)
    if best is None:
        return
    context.say(f"{name}: options")
    bases = _training_groups.bases_of(context, name, best)
    yield from _kept(context, name, _training_groups.options(context, name, size, bases, seconds * OPTIONS_SHARE))


def _at_a_batch_that_fits(context: Context, name: str, seconds: float) -> tuple[Size, list[Found]]:
    """The first group, and its size: the reference batch, halved until it fits the memory."""
    size = NETWORKS[name].cuda if context.cuda else NETWORKS[name].cpu
    while True:
        try:
            found = _training_groups.precisions(context, name, size, seconds)
            shortage = ""
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            shortage = first_sentence(error)
        _release(context)
        if not shortage:
            return size, found
        if size.batch // 2 < SMALLEST_BATCH:
            return size, [Gap(fact=fact_of(name), reason=f"even a batch of {size.batch} did not fit: {shortage}")]
        size = replace(size, batch=size.batch // 2)
        context.say(f"{name}: a batch of {size.batch}, since more does not fit")


def _kept(context: Context, name: str, stage: Iterable[Found]) -> Iterator[Found]:
    yield from or_shortage(stage, fact_of(name))
    _release(context)


@contextmanager
def _empty_compile_cache() -> Iterator[None]:
    """An empty cache for torch.compile, so that its time is measured and not that of reading a cache."""
    before = os.environ.get(CACHE)
    with tempfile.TemporaryDirectory(prefix="gputune-", ignore_cleanup_errors=True) as folder:
        os.environ[CACHE] = folder
        try:
            yield
        finally:
            os.environ.pop(CACHE)
            if before is not None:
                os.environ[CACHE] = before


def _release(context: Context) -> None:
    """Free the memory of the last group, whose models and gradients are in reference cycles."""
    import torch

    gc.collect()
    torch._dynamo.reset()
    if context.cuda:
        torch.cuda.empty_cache()
