"""One kernel for a whole optimizer step: `torch.optim.AdamW(..., fused=True)`.

torch's default updates parameters in groups (`foreach`), with several kernels for each and a copy of their size in
memory. The fused form exists for SGD, Adam, AdamW and Adagrad and sums in another order.

Source: PyTorch, "torch.optim" documentation.
"""

from dataclasses import replace

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import decide, keep, lacking
from ._training import BENCH, but_for, choice_of_option, losing, option_everywhere

VALUE = bool
PHASE: Phase = "code"
USE = "torch.optim.AdamW(model.parameters(), **tuning.optimizer_kwargs())"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    pairs, comparison = option_everywhere(measurements, "fused")
    if comparison is None:
        return keep(False, lacking(pairs))
    what = f"training steps ({', '.join(pairs)}) with the fused optimizer"
    choice = decide(comparison, (False, True), what, BENCH)
    return replace(choice, reason=choice.reason + but_for(losing(pairs)))


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    return choice_of_option(measurements, family, "fused", "its steps with the fused optimizer")
