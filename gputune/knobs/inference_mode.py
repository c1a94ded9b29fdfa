"""torch's inference mode around a model's call (`torch.inference_mode`), in a program that computes no gradients.

Beside what `torch.no_grad` leaves out, tensors have no version counter, which saves the host some work for each
operation. What is made in it may be neither changed nor differentiated outside, so a model's outputs are copied. It is
tried by `gputune tune` on a program's own calls and by no bench: it concerns none that trains.

Source: PyTorch, "Autograd mechanics".
"""

from . import Choice, Facts, Measurements, Need, Numerics, Phase, Stage
from ._evidence import choose

VALUE = bool
PHASE: Phase = "code"
USE = "with torch.inference_mode(): ..."
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "torch")
STAGE: Stage = "options"
CANDIDATE = True
NEEDS: tuple[Need, ...] = ("inference",)
SPARES_HOST = True


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    return choose(False, "it concerns programs that train nothing, and is tried on their own calls: gputune tune")
