"""One kernel for a whole optimizer step: `torch.optim.AdamW(..., fused=True)`.

torch's default updates parameters in groups (`foreach`), with several kernels for each and a copy of their size in
memory. The fused form exists for SGD, Adam, AdamW and Adagrad and sums in another order.

Where it is on in general, a kind of network has it too unless it gains nothing there: any certain gain will do, since
one of about 3 % would be chosen in one probe and not in the next.

Source: PyTorch, "torch.optim" documentation.
"""

from dataclasses import replace

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import decide
from ._training import but_for, choice_everywhere, option
from ._training_rows import BENCH

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
    chosen, comparison = option(measurements, family, "fused") or (False, None)
    if comparison is None:
        return None
    little = not chosen and comparison.low > 1 and bool(recommend(facts, measurements).value)
    what = "its steps with the fused optimizer"
    choice = decide(comparison, (False, True), what, BENCH, chosen=chosen or little)
    return replace(choice, reason=f"on in general, and here {choice.reason}") if little else choice
