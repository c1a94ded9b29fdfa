"""Spreads the nets under a model in which settings were turned on."""

from . import observer
from .nets.backward import Rehearsal
from .nets.kept_tensors import Hooks
from .root import Root


def spread(root: Root) -> None:
    """Have what was just turned on in a model be watched."""
    suspects = root.call.suspects
    on = {one.name for one in suspects.on}
    if not on:
        return
    suspects.requirements.known |= root.seen.requires
    if "amp_dtype" in on:
        observer.follow(Hooks(root))
    if root.rehearse:
        suspects.nets.append(Rehearsal(root))
