"""Let cuDNN time its algorithms for each new convolution shape and keep the fastest (`torch.backends.cudnn.benchmark`).

It pays only where cuDNN's own choice is poor, costs a search for every new shape (so it hurts where shapes vary), and
may choose another algorithm in the next run. Deterministic mode (`cudnn.deterministic` or
`torch.use_deterministic_algorithms`) wins over it.

Source: PyTorch, "Reproducibility" and "Performance tuning guide".
"""

from . import Choice, Comparison, Facts, Measurements, Numerics, Phase
from ._evidence import choose, decide, decide_between, first, of_device, select
from ._training import BENCH, option

VALUE = bool
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
DEFAULT = False


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(False, "it concerns GPUs only")
    chosen, comparison = option(measurements, "convnet", "cudnn_benchmark") or (False, None)
    if comparison:
        return _by_steps(measurements, chosen, comparison)
    on = select(measurements, "conv", "throughput", cudnn_benchmark=True)
    off = select(measurements, "conv", "throughput", cudnn_benchmark=False)
    return decide_between(on, off, (False, True), f"{len(on)} convolutions with cuDNN's own search", "conv")


def _by_steps(measurements: Measurements, chosen: bool, comparison: Comparison) -> Choice:
    taken = first(measurements, BENCH, "search_time", network="convnet")
    cost = f", the first of which took {taken.median:.3g} s" if taken else ""
    what = f"steps of a convnet with cuDNN's own search{cost},"
    return decide(comparison, (False, True), what, BENCH, chosen=chosen)


def apply(value: bool) -> None:
    import torch

    if value and (torch.backends.cudnn.deterministic or torch.are_deterministic_algorithms_enabled()):
        raise ValueError("deterministic mode is on, and wins")
    torch.backends.cudnn.benchmark = value


def current() -> bool:
    import torch

    return bool(torch.backends.cudnn.benchmark)


def default() -> bool:
    return DEFAULT
