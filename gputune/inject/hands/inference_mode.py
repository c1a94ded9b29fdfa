"""Inference mode around the model's call, in a program that trains nothing; what it returns are usual tensors."""

from ...settings import Value
from ..applied import Reason
from ..root import Root
from . import Obstacle

IN_CALLS = True


def obstacle(root: Root, value: Value) -> Obstacle | None:
    if root.gradients:
        return Obstacle(Reason.TRAINS())
    return Obstacle(Reason.OWN_INFERENCE(), users=True) if root.seen.inference else None


def put_in(root: Root, value: Value) -> Value:
    root.call.inference = True
    return True


def take_out(root: Root) -> None:
    root.call.inference = False
