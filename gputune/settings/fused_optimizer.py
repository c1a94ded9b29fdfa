"""One kernel for a whole optimizer step: `torch.optim.AdamW(..., fused=True)`.

torch's default updates parameters in groups (`foreach`), with several kernels for each and a copy of their size in
memory. The fused form exists for SGD, Adam, AdamW and Adagrad and sums in another order.

Where it is on in general, a kind of network has it too, unless its own steps are certainly slower with it, or by more
than 3 %: what lies close to 1 would be chosen in one probe and not in the next. (On an H200 the steps of an MLP, which
the host bounds, ran 0.99 to 1.10 times as fast with it in ten probes, and 1.03 times over all of them.)

Source: PyTorch, "torch.optim" documentation.
"""

from dataclasses import replace

from . import Choice, Comparison, Facts, Measurements, Numerics, Phase
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
    as_in_general = not chosen and not _is_slower(comparison) and bool(recommend(facts, measurements).value)
    what = "its steps with the fused optimizer"
    choice = decide(comparison, (False, True), what, BENCH, chosen=chosen or as_in_general)
    return replace(choice, reason=f"on in general, and here {choice.reason}") if as_in_general else choice


def _is_slower(comparison: Comparison) -> bool:
    from ..measurement import LEAST_GAIN  # slow to import, and the shim imports this file

    return comparison.high < 1 or comparison.ratio < 1 / LEAST_GAIN
