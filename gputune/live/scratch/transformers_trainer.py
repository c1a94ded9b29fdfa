"""The Trainer of transformers: its folder and all that it writes, deletes and finds there."""

from functools import partial
from types import ModuleType
from typing import Any

from ._rerouting import Paths, Places, reroute, wrap

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


def redirect(module: ModuleType, places: Places) -> None:
    if module.__name__ == ARGUMENTS:
        wrap(module.TrainingArguments, "__post_init__", partial(_post_init, places))
    elif module.__name__ == UTILS:
        wrap(module, "get_last_checkpoint", partial(_last_checkpoint, places))
    elif module.__name__ == TRAINER:
        # The program may have changed its arguments since they were made.
        reroute(module, "Trainer.__init__", "args", partial(_redirected, places))
        wrap(module.Trainer, "push_to_hub", _push_nothing)
        wrap(module.Trainer, "_get_output_dir", partial(_output_folder, places))


def _post_init(places: Places, original: Any, self: Any) -> None:
    original(self)
    _redirected(places, self)


def _redirected(places: Places, arguments: Any) -> Any:
    for name in ("output_dir", "logging_dir"):
        if getattr(arguments, name, None):
            setattr(arguments, name, places.folder(getattr(arguments, name)))
    if arguments is not None:
        arguments.push_to_hub = False
    return arguments


def _output_folder(places: Places, original: Any, self: Any, *inputs: Any, **named: Any) -> Any:
    """Everything of a checkpoint is written below this, also where the arguments were changed after all."""
    return places.written(original(self, *inputs, **named))


def _push_nothing(original: Any, self: Any, *inputs: Any, **named: Any) -> None:
    """A model of a run that was cut short must not take the place of the user's on the Hub."""


def _last_checkpoint(places: Places, original: Any, folder: Any) -> Any:
    """A training that goes on from the user's last checkpoint finds it, where it has written none itself."""
    ours, users = places.both(folder)
    try:
        found = original(ours)
    except FileNotFoundError:
        return original(users)
    try:
        return found or original(users)
    except FileNotFoundError:
        return None
