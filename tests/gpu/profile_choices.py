"""What a profile's choices come to for a script of `unchanged/`."""

from __future__ import annotations

import runpy
import sys
from typing import Any

from turns import HERE

from gputune.advice import Choice
from gputune.live.models import family
from gputune.profile import Profile

FLAGS = ("matmul_precision", "cudnn_benchmark")
PUT_IN = {"amp_dtype": None, "channels_last": False, "compile": False, "fused_optimizer": False}
"""With torch's defaults."""
NOT_WRITTEN = {"cudnn_tf32": True, "omp_threads": None, "sdpa_backend": None, "expandable_segments": False}
"""What `training/by_hand.py` does not write, and torch's default of it."""


def choices_of(profile: Profile, name: str) -> dict[str, Any]:
    """The values of FLAGS and PUT_IN: those of the script's program, else those of its model's kind.

    bfloat16 stands for float16, which needs a scaler in the script, and channels_last is of models with images.
    """
    for setting, default in NOT_WRITTEN.items():
        assert profile.settings[setting].value == default, f"by_hand.py would have to write {setting}"
    model = network(name)
    kind = profile.families.get(family(model) or "", {})
    values = {setting: choice.value for setting, choice in (profile.settings | kind).items()}
    for own in getattr(profile, "programs", ()):
        if own.entry == f"{name}.py":
            values |= PUT_IN | own.by_numerics["mixed"]
    if values["amp_dtype"] == "float16":
        values["amp_dtype"] = "bfloat16"
    values["channels_last"] = bool(values["channels_last"]) and has_images(model)
    return {setting: values[setting] for setting in (*FLAGS, *PUT_IN)}


def chosen(value: Any) -> Choice:
    return Choice(value=value, gain=None, interval=None, reason="known from earlier runs", evidence=())


def network(name: str) -> Any:
    import torch

    with torch.device("meta"):
        return script(name)["network"]()


def script(name: str) -> dict[str, Any]:
    blocks = str(HERE / "training")
    sys.path.append(blocks)
    try:
        return runpy.run_path(str(HERE / "unchanged" / f"{name}.py"))
    finally:
        sys.path.remove(blocks)


def has_images(model: Any) -> bool:
    import torch

    return any(isinstance(layer, torch.nn.Conv2d) for layer in model.modules())
