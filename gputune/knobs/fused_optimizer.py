"""One kernel for a whole optimizer step: `torch.optim.AdamW(..., fused=True)`.

torch's default updates parameters in groups (`foreach`), with several kernels for each and a copy of their size in
memory. The fused form exists for SGD, Adam, AdamW and Adagrad and sums in another order.

Where all networks together gain by it, each kind has it, unless its own steps are certainly slower with it, or by more
than 3 %: what lies close to 1 would be chosen in one probe and not in the next.

Source: PyTorch, "torch.optim" documentation.
"""

from dataclasses import replace

from . import Choice, Facts, Measurements, Need, Numerics, Phase, Stage
from ._training import but_for, choice_everywhere, choice_of_option, has_fused_like_all, option

VALUE = bool
PHASE: Phase = "code"
USE = "torch.optim.AdamW(model.parameters(), **tuning.optimizer_kwargs())"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
STAGE: Stage = "options"
CANDIDATE = True
NEEDS: tuple[Need, ...] = ("training",)
SPARES_HOST = True


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    what = "training steps ({}) with the fused optimizer"
    choice, slower = choice_everywhere(measurements, "fused", what, free=True)
    without = [network for network in slower if not (option(measurements, network, "fused") or (False, None))[0]]
    return replace(choice, reason=choice.reason + but_for(without))


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    choice = choice_of_option(measurements, family, "fused", "its steps with the fused optimizer")
    if choice is None or not has_fused_like_all(measurements, family):
        return choice
    return replace(choice, reason=f"on for all networks together, and here {choice.reason}")
