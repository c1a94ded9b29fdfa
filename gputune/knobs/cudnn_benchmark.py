"""Let cuDNN time its algorithms for each new convolution shape and keep the fastest (`torch.backends.cudnn.benchmark`).

It pays only where cuDNN's own choice is poor, costs a search for every new shape (so it hurts where shapes vary), takes
memory for what it tries, and may choose another algorithm in the next run. So it must certainly gain a tenth in whole
training steps whose peak memory was looked at. Deterministic mode (`cudnn.deterministic` or
`torch.use_deterministic_algorithms`) wins over it.

Source: PyTorch, "Reproducibility" and "Performance tuning guide".
"""

from . import Choice, Facts, Measurements, Need, Numerics, Phase, Stage
from ._evidence import NOT_MEASURED, choose, first, no_gain, of_device, range_text, unmeasured
from ._training import MOST_MEMORY, WORTH_SEARCH, search_gain, search_memory
from ._training_rows import BENCH

VALUE = bool
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
STAGE: Stage = "options"
AFTER = ("fused_optimizer",)
CANDIDATE = True
NEEDS: tuple[Need, ...] = ("gpu", "images")
DEFAULT = False

WORTH = WORTH_SEARCH


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(False, "it concerns GPUs only")
    gain, memory = search_gain(measurements, "convnet"), search_memory(measurements, "convnet")
    if memory is not None and memory > MOST_MEMORY:
        return choose(False, f"it takes {memory:.3g} times the peak memory of a convnet's steps", None, BENCH)
    if gain is None:
        return unmeasured(False, NOT_MEASURED)
    taken = first(measurements, BENCH, "search_time", network="convnet")
    cost = f", the first of which took {taken.median:.3g} s," if taken else ""
    what = f"steps of a convnet with cuDNN's own search{cost} ran {range_text(gain)} as fast as with torch's default"
    if memory is not None:
        what += f", with {memory:.3g} times the peak memory"
    why = ""
    if gain.verdict != "gain":
        why = no_gain(gain)
    elif gain.low <= WORTH_SEARCH:
        why = "not certain to gain the tenth that a search is worth"
    elif memory is None:
        why = "its peak memory is not known"
    return choose(not why, f"{why}: {what}" if why else what, gain, BENCH)


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
