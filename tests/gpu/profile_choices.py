"""What a profile's choices come to for a script of `unchanged/`, and the best that is known of each as its program."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from turns import HERE

from gputune.profile import Fingerprint, Profile
from gputune.settings import Choice

try:
    from gputune.inject.models import family
except ImportError:
    from gputune.runtime.family import family

FLAGS = ("matmul_precision", "cudnn_benchmark")
PUT_IN = {"amp_dtype": None, "channels_last": False, "compile": False, "fused_optimizer": False}
"""With torch's defaults."""
NOT_WRITTEN = {"cudnn_tf32": True, "omp_threads": None, "sdpa_backend": None, "expandable_segments": False}
"""What `training/by_hand.py` does not write, and torch's default of it."""

COMPILED = {"amp_dtype": "bfloat16", "compile": True, "fused_optimizer": True}
PROGRAMS: dict[str, dict[str, Any]] = {
    "mlp": {"fused_optimizer": True},
    "decoder": COMPILED,
    "convnet": COMPILED | {"channels_last": True},
    "vision_transformer": COMPILED | {"channels_last": True},
    "unet": COMPILED | {"channels_last": True},
    "lstm": {},
}
"""The fastest of what was tried on an H200, beside TF32; settings that are not named stay at torch's defaults."""


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


def with_programs(profile: Profile, names: Sequence[str]) -> Profile:
    """The profile with a program for each script, which has the best that is known of it."""
    return replace(profile, programs=tuple(program(name, profile.fingerprint) for name in names))


def program(name: str, fingerprint: Fingerprint) -> Any:
    from gputune.inject import models
    from gputune.profile import Program

    values = PUT_IN | PROGRAMS[name]
    return Program(
        entry=f"{name}.py",
        created="2026-11-23T00:00:00Z",
        fingerprint=fingerprint,
        models=(models.key(network(name)),),
        input_shapes=(tuple(script(name)["batch"]()[0].shape),),
        world_size=1,
        settings={setting: chosen(value) for setting, value in values.items()},
        by_numerics={"mixed": values},
    )


def chosen(value: Any) -> Choice:
    return Choice(value=value, gain=None, interval=None, reason="known from earlier runs", evidence=())


def network(name: str) -> Any:
    """The model of a script, without memory."""
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
