"""Spreads the nets under a model in which settings were turned on."""

from collections.abc import Sequence

from ..knobs._called import PLACE
from ..knobs.amp_dtype import has_backward_hook, is_hooked
from . import flags, observer
from .call import Call
from .nets import slower_tf32
from .nets.backward import Rehearsal
from .nets.kept_tensors import Hooks
from .nets.not_finite import NotFinite
from .nets.results import Results
from .nets.slower import Slower
from .nets.varying_shapes import VaryingShapes
from .root import Root


def spread(root: Root, *, is_tuned: bool = False) -> None:
    """Have what was just turned on in a model be watched. In a run of a tune, which compares runs and times them,
    nothing is compared or left out within the program.
    """
    suspects = root.call.suspects
    on = {one.name for one in suspects.on}
    if not on:
        return
    suspects.fixed = {"channels_last"} if root.is_ddp or "compile" in on else set()
    suspects.requirements.known |= root.seen.requires
    if "amp_dtype" in on:
        observer.follow(Hooks(root))
    if root.rehearse:
        suspects.nets.append(Rehearsal(root))
    if is_tuned or not (root.is_trained and root.gradients):
        return
    if "amp_dtype" in on:
        observer.follow(NotFinite(root))
    if "channels_last" in on or flags.is_ours("cudnn_benchmark", True):
        suspects.nets.append(VaryingShapes(root))
    suspects.nets.append(Results(root, _obstacle(root)))


def compare_speed(roots: Sequence[Root]) -> None:
    """Have the settings in these models timed, unless the program is to compute the same in every run."""
    import torch

    watched = [one for one in roots if isinstance(vars(one.model).get(PLACE), Call) and one.call.suspects.on]
    if watched:
        slower_tf32.leave()
    if watched and all(one.gradients for one in watched) and not torch.are_deterministic_algorithms_enabled():
        Slower(watched).start()


def _obstacle(root: Root) -> str | None:
    """Why a model's call may not be made once more only to compare what it computes."""
    seen, modules = root.seen, list(root.inner.modules())
    reasons = {
        f"its forward changes the variable {seen.changes_outside}": seen.changes_outside,
        "it has hooks": any(map(is_hooked, modules)) or any(map(has_backward_hook, modules)),
        "its weights have hooks": any(one._backward_hooks for one in root.inner.parameters()),
        "its forward puts hooks on activations": "hooks on activations" in root.features,
        "it runs under hooks on what is saved for backward": seen.hooked,
        "a backward pass runs within its own": "backward within backward" in root.features,
        "it exchanges values between ranks": "collectives" in root.features,
    }
    return next((why for why, is_so in reasons.items() if is_so), None)
