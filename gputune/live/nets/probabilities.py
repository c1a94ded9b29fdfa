"""A loss that takes logarithms of a model's sigmoids keeps that model in FP32.

bfloat16 has no number between 0.996 and 1. So a sigmoid of 7 is 1, and if the label is 0, BCELoss is 100 and has no
gradient: a DCGAN's discriminator was lost after 20 steps. torch refuses `binary_cross_entropy` under autocast, but a
loss behind the model's call is outside of it. Softmax is computed in FP32 under autocast.
"""

import re
from collections.abc import Sequence
from typing import Any

from ...knobs._outputs import nodes_behind

_LOGARITHM = r"(Log(1p|2|10)?|BinaryCrossEntropy)Backward\d"
_PASSED_ON = (
    r"(\w*View\w*|\w*Reshape\w*|Squeeze|Unsqueeze|Select|Slice|Index|Permute|Transpose|T|Cat|Stack|Clone|Expand|"
    r"Split\w*|Unbind|Clamp\w*|Add|Sub|Rsub|Log(1p|2|10)?|Where|Gather|Mean|\w*ToCopy|Alias|_DDPSink)Backward\d?"
)
"""What leaves a probability what it is, or takes it from 1."""
_SCALES = r"(Mul|Div)Backward\d"
"""So do these, unless the other factor has a gradient: a gate is no probability."""


def takes_logarithms(losses: Sequence[Any]) -> bool:
    tensors = [one for one in losses if hasattr(one, "grad_fn")]
    return any(re.fullmatch(_LOGARITHM, node.name()) for node in nodes_behind(tensors))


def are_sigmoids(outputs: Sequence[Any]) -> bool:
    """Whether one of a call's outputs is the result of a sigmoid."""
    waiting = [one.grad_fn for one in outputs if one.grad_fn is not None]
    known = set(waiting)
    while waiting:
        node = waiting.pop()
        if node.name().startswith("SigmoidBackward"):
            return True
        following = {one for one, _ in node.next_functions if one is not None}
        if re.fullmatch(_PASSED_ON, node.name()) or (len(following) == 1 and re.fullmatch(_SCALES, node.name())):
            waiting += following - known
            known |= following
    return False
