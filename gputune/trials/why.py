"""Why the guard accepts or refuses a combination of settings, or can say nothing. Reasons are data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """Why a combination was accepted, refused, or neither. The value is the sentence, with placeholders."""

    SAME = "loss within FP32's own spread"
    NO_NUMBER = "its loss is no number from step {0} on"
    FP32_NO_NUMBER = "the loss is no number in FP32 either"
    FP32_NO_GRADIENT = "in FP32 no gradients that are numbers were seen at step {0}"
    NO_LOSS = "no call of backward on a scalar was seen"
    NOT_ALIKE = "two runs from one seed differ before anything is put in: the loss of step {0} is {1}, and {2}"
    LOSS = "the loss of one batch at equal weights is {0} instead of {1}"
    GRADIENTS = "the gradients of one batch at equal weights differ by {0} %, and the precision explains {1} %"
    ALONG = "the gradients of one batch at equal weights are {0} times FP32's"
    PARAMETER = "the gradient of parameter {0} differs by {1} % at equal weights, and the precision explains {2} %"
    VANISHES = "the gradient of parameter {0} vanishes"
    MISSING = "{0} parameters have gradients at equal weights instead of {1}"
    STEP = "the optimizer's step differs from its plain form's by {0} %"
    SPREAD = "its mean loss is {0} in part {1} of {2}, and FP32's own range ends at {3}"

    def __call__(self, *arguments: object) -> Why:
        return Why(self, tuple(map(str, arguments)))


@dataclass(frozen=True, slots=True)
class Why:
    """A reason with its arguments."""

    reason: Reason
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.reason.value.format(*self.arguments)


def percent(share: float) -> str:
    return f"{100 * share:.3g}"
