"""transformers: `save_pretrained` of everything that has it, and the folder of a Trainer."""

from types import ModuleType
from typing import Any

from ._places import Places, reroute

TRAINER_UTILS, ARGUMENTS = "transformers.trainer_utils", "transformers.training_args"
MODULES = (
    "transformers.configuration_utils",
    "transformers.feature_extraction_utils",
    "transformers.generation.configuration_utils",
    "transformers.image_processing_base",
    "transformers.modeling_utils",
    "transformers.processing_utils",
    "transformers.tokenization_utils_base",
    "transformers.video_processing_utils",
    TRAINER_UTILS,
    ARGUMENTS,
)


def redirect(module: ModuleType, places: Places) -> None:
    if module.__name__ == ARGUMENTS:
        _redirect_trainer(module.TrainingArguments, places)
    elif module.__name__ == TRAINER_UTILS:
        _find_users_checkpoints(module, places)
    else:
        for kind in [one for one in vars(module).values() if isinstance(one, type)]:
            if kind.__module__ == module.__name__ and "save_pretrained" in vars(kind):
                reroute(kind, "save_pretrained", "save_directory", places.written)


def _redirect_trainer(kind: Any, places: Places) -> None:
    original = kind.__post_init__

    def post_init(self: Any) -> None:
        original(self)
        for name in ("output_dir", "logging_dir"):
            if getattr(self, name, None):
                setattr(self, name, places.written(getattr(self, name)))

    kind.__post_init__ = post_init


def _find_users_checkpoints(module: ModuleType, places: Places) -> None:
    """A training that goes on from the user's last checkpoint finds it, where it has written none itself."""
    original = module.get_last_checkpoint

    def get_last_checkpoint(folder: Any) -> Any:
        for place in (folder, places.users(folder)):
            try:
                found = original(place)
            except FileNotFoundError:
                found = None
            if found is not None:
                return found
        return None

    module.get_last_checkpoint = get_last_checkpoint  # type: ignore[attr-defined]
