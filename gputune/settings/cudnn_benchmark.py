"""Let cuDNN time its algorithms for each new convolution shape and keep the fastest (`torch.backends.cudnn.benchmark`).

It pays only where cuDNN's own choice is poor, costs a search for every new shape (so it hurts where shapes vary), takes
memory for what it tries, and may choose another algorithm in the next run. So it must certainly gain a tenth in whole
training steps whose peak memory was looked at. Deterministic mode (`cudnn.deterministic` or
`torch.use_deterministic_algorithms`) wins over it.

Source: PyTorch, "Reproducibility" and "Performance tuning guide".
"""

from . import Choice, Comparison, Facts, Measurements, Numerics, Phase
from ._evidence import NOT_MEASURED, choose, first, never, no_gain, of_device, range_text, unmeasured
from ._training import MOST_MEMORY, WORTH_SEARCH, search_gain, search_memory
from ._training_rows import BENCH

VALUE = bool
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
DEFAULT = False

WORTH = WORTH_SEARCH


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(False, "it concerns GPUs only")
    gain = search_gain(measurements, "convnet")
    return _by_steps(measurements, gain) if gain else unmeasured(False, NOT_MEASURED)


def gain_of(facts: Facts, measurements: Measurements, value: bool, family: str = "") -> Comparison | None:
    memory = search_memory(measurements, "convnet")
    return never() if memory is not None and memory > MOST_MEMORY else search_gain(measurements, "convnet")


def _by_steps(measurements: Measurements, gain: Comparison) -> Choice:
    taken, memory = first(measurements, BENCH, "search_time", network="convnet"), search_memory(measurements, "convnet")
    cost = f", the first of which took {taken.median:.3g} s," if taken else ""
    what = f"steps of a convnet with cuDNN's own search{cost} ran {range_text(gain)} as fast as with torch's default"
    if memory is not None:
        what += f", with {memory:.3g} times the peak memory"
    if gain.verdict != "gain":
        return choose(False, f"{no_gain(gain)}: {what}", gain, BENCH)
    if gain.low <= WORTH_SEARCH:
        return choose(False, f"not certain to gain the tenth that a search is worth: {what}", gain, BENCH)
    if memory is None:
        return choose(False, f"its peak memory is not known: {what}", gain, BENCH)
    if memory > MOST_MEMORY:
        return choose(False, f"it takes too much memory: {what}", gain, BENCH)
    return choose(True, what, gain, BENCH)


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
