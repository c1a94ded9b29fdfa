"""Accelerate: the states and models that an Accelerator saves, and the folder of a project."""

from types import ModuleType
from typing import Any

from ._places import Places, reroute

ACCELERATOR = "accelerate.accelerator"
MODULES = (ACCELERATOR, "accelerate.utils.dataclasses")


def redirect(module: ModuleType, places: Places) -> None:
    if module.__name__ == ACCELERATOR:
        reroute(module.Accelerator, "save_state", "output_dir", places.written)
        reroute(module.Accelerator, "save_model", "save_directory", places.written)
        reroute(module.Accelerator, "load_state", "input_dir", places.read)
        return
    kind = module.ProjectConfiguration
    original = kind.__post_init__

    def post_init(self: Any) -> None:
        for name in ("project_dir", "logging_dir"):
            setattr(self, name, places.written(getattr(self, name)))
        original(self)

    kind.__post_init__ = post_init
