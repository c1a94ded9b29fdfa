"""The Trainer of transformers: its folder and all that it writes, deletes and finds there."""

import functools
from types import ModuleType
from typing import Any

from ._places import Places
from ._rerouting import Paths, replace, reroute, reroute_all

TRAINER, UTILS, ARGUMENTS = "transformers.trainer", "transformers.trainer_utils", "transformers.training_args"
PATHS: Paths = {
    TRAINER: [
        ("Trainer.save_model", "output_dir", "written"),
        ("Trainer._save", "output_dir", "written"),
        ("Trainer._rotate_checkpoints", "output_dir", "written"),
        ("Trainer.train", "resume_from_checkpoint", "read"),
    ],
    UTILS: [("rotate_checkpoints", "output_dir", "written")],
    ARGUMENTS: [],
    "transformers.trainer_callback": [
        ("TrainerState.save_to_json", "json_path", "written"),
        ("TrainerState.load_from_json", "json_path", "read"),
    ],
}
MODULES = tuple(PATHS)


def redirect(module: ModuleType, places: Places) -> None:
    reroute_all(module, module.__name__, PATHS, places)
    if module.__name__ == ARGUMENTS:
        _redirect_arguments(module.TrainingArguments, places)
    elif module.__name__ == UTILS:
        _find_users_checkpoints(module, places)
    elif module.__name__ == TRAINER:
        # The program may have changed its arguments since they were made.
        reroute(module, "Trainer.__init__", "args", functools.partial(_redirected, places=places))
        replace(module.Trainer, "push_to_hub", _push_nothing(module.Trainer.push_to_hub))
        _redirect_folder(module.Trainer, places)


def _redirect_arguments(kind: Any, places: Places) -> None:
    original = kind.__post_init__

    @functools.wraps(original)
    def post_init(self: Any) -> None:
        original(self)
        _redirected(self, places)

    replace(kind, "__post_init__", post_init)


def _redirected(arguments: Any, places: Places) -> Any:
    for name in ("output_dir", "logging_dir"):
        if getattr(arguments, name, None):
            setattr(arguments, name, places.folder(getattr(arguments, name)))
    if arguments is not None:
        arguments.push_to_hub = False
    return arguments


def _redirect_folder(kind: Any, places: Places) -> None:
    """Everything of a checkpoint is written below this, also where the arguments were changed after all."""
    original = kind._get_output_dir

    @functools.wraps(original)
    def folder(self: Any, *inputs: Any, **named: Any) -> Any:
        return places.written(original(self, *inputs, **named))

    replace(kind, "_get_output_dir", folder)


def _push_nothing(original: Any) -> Any:
    """A model of a run that was cut short must not take the place of the user's on the Hub."""

    @functools.wraps(original)
    def push_to_hub(self: Any, *inputs: Any, **named: Any) -> None:
        return None

    return push_to_hub


def _find_users_checkpoints(module: ModuleType, places: Places) -> None:
    """A training that goes on from the user's last checkpoint finds it, where it has written none itself."""
    original = module.get_last_checkpoint

    @functools.wraps(original)
    def get_last_checkpoint(folder: Any) -> Any:
        ours, users = places.both(folder)
        try:
            found = original(ours)
        except FileNotFoundError:
            return original(users)
        try:
            return found or original(users)
        except FileNotFoundError:
            return None

    replace(module, "get_last_checkpoint", get_last_checkpoint)
