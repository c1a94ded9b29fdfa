"""One kernel for a whole optimizer step: `torch.optim.AdamW(..., fused=True)`.

torch's default updates parameters in groups (`foreach`), with several kernels for each and a copy of their size in
memory. The fused form exists for SGD, Adam, AdamW and Adagrad and sums in another order.

Source: PyTorch, "torch.optim" documentation.
"""

from dataclasses import replace

from . import Choice, Facts, Measurements, Numerics, Phase
from ._training import but_for, choice_everywhere, choice_of_option

VALUE = bool
PHASE: Phase = "code"
USE = "torch.optim.AdamW(model.parameters(), **tuning.optimizer_kwargs())"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    what = "training steps ({}) with the fused optimizer"
    choice, slower = choice_everywhere(measurements, "fused", what, free=True)
    return replace(choice, reason=choice.reason + but_for(slower))


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    return choice_of_option(measurements, family, "fused", "its steps with the fused optimizer")
