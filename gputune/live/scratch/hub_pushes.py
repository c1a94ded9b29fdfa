"""transformers: a model of a run that was cut short must not take the place of the user's on the Hub."""

from types import ModuleType
from typing import Any

from ._rerouting import Paths, wrap

TRAINER, ARGUMENTS = "transformers.trainer", "transformers.training_args"
PATHS: Paths = {TRAINER: [], ARGUMENTS: []}


def redirect(module: ModuleType, places: Any) -> None:
    if module.__name__ == ARGUMENTS:
        wrap(module.TrainingArguments, "__post_init__", _post_init)
    else:
        wrap(module.Trainer, "__init__", _initialise)
        wrap(module.Trainer, "push_to_hub", _push_nothing)


def _post_init(original: Any, self: Any) -> None:
    original(self)
    self.push_to_hub = False


def _initialise(original: Any, self: Any, *inputs: Any, **named: Any) -> None:
    """The program may have changed its arguments since they were made."""
    for arguments in (*inputs, *named.values()):
        if hasattr(arguments, "push_to_hub") and hasattr(arguments, "output_dir"):
            arguments.push_to_hub = False
    original(self, *inputs, **named)


def _push_nothing(original: Any, self: Any, *inputs: Any, **named: Any) -> None:
    """Instead of `Trainer.push_to_hub`."""
