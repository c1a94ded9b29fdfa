"""Accelerate: the states and models that an Accelerator saves, and the folder of a project."""

from pathlib import Path
from types import ModuleType
from typing import Any

from ._rerouting import Paths, Places, wrap

ACCELERATOR, DATACLASSES = "accelerate.accelerator", "accelerate.utils.dataclasses"
PATHS: Paths = {
    ACCELERATOR: [
        ("Accelerator.save_state", "output_dir", "written"),
        ("Accelerator.save_model", "save_directory", "written"),
        ("Accelerator.load_state", "input_dir", "read"),
    ],
    DATACLASSES: [("ProjectConfiguration.set_directories", "project_dir", "written")],
    "accelerate.utils.modeling": [("load_checkpoint_in_model", "checkpoint", "read")],
    "accelerate.big_modeling": [("load_checkpoint_and_dispatch", "checkpoint", "read")],
}


def redirect(module: ModuleType, places: Places) -> None:
    def load_state(original: Any, self: Any, input_dir: Any = None, *inputs: Any, **named: Any) -> Any:
        """Without a folder, the last state of the project is loaded: the user's, before any was saved in this run."""
        project = self.project_configuration
        ours = project.project_dir
        states = Path(ours or "", "checkpoints")
        if ours and not (states.is_dir() and any(states.iterdir())):
            project.project_dir = places.both(ours)[1]
        try:
            return original(self, input_dir, *inputs, **named)
        finally:
            project.project_dir = ours

    def post_init(original: Any, self: Any) -> None:
        """Old states below the folder of a project are deleted by number."""
        for name in ("project_dir", "logging_dir"):
            setattr(self, name, places.written(getattr(self, name)))
        original(self)

    if module.__name__ == ACCELERATOR:
        wrap(module.Accelerator, "load_state", load_state)
    elif module.__name__ == DATACLASSES:
        wrap(module.ProjectConfiguration, "__post_init__", post_init)
