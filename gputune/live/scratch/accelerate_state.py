"""Accelerate: the states and models that an Accelerator saves, and the folder of a project."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ._places import Places
from ._rerouting import Paths, replace, reroute_all

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
MODULES = tuple(PATHS)


def redirect(module: ModuleType, places: Places) -> None:
    reroute_all(module, module.__name__, PATHS, places)
    if module.__name__ == ACCELERATOR:
        _find_users_states(module.Accelerator, places)
    elif module.__name__ == DATACLASSES:
        _redirect_project(module.ProjectConfiguration, places)


def _redirect_project(kind: Any, places: Places) -> None:
    """Old states below the folder of a project are deleted by number."""
    original = kind.__post_init__

    @functools.wraps(original)
    def post_init(self: Any) -> None:
        for name in ("project_dir", "logging_dir"):
            setattr(self, name, places.written(getattr(self, name)))
        original(self)

    replace(kind, "__post_init__", post_init)


def _find_users_states(kind: Any, places: Places) -> None:
    """Without a folder, the last state of the project is loaded: the user's, before any was saved in this run."""
    original = kind.load_state

    @functools.wraps(original)
    def load_state(self: Any, input_dir: Any = None, *inputs: Any, **named: Any) -> Any:
        with _project_of_states(self.project_configuration, places):
            return original(self, input_dir, *inputs, **named)

    replace(kind, "load_state", load_state)


@contextmanager
def _project_of_states(project: Any, places: Places) -> Iterator[None]:
    ours = project.project_dir
    if ours and not _has_states(ours):
        project.project_dir = places.both(ours)[1]
    try:
        yield
    finally:
        project.project_dir = ours


def _has_states(project: str) -> bool:
    states = Path(project) / "checkpoints"
    return states.is_dir() and any(states.iterdir())
