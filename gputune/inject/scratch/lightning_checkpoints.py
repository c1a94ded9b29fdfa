"""Lightning: the folders of a Trainer, of its checkpoints and of its loggers."""

from pathlib import Path
from types import ModuleType
from typing import Any

from ._places import Places, reroute

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
_SUBMODULES = ("trainer.trainer", "callbacks.model_checkpoint", "loggers.csv_logs", "loggers.tensorboard")
MODULES = tuple(f"{package}.{module}" for package in _PACKAGES for module in _SUBMODULES)


def redirect(module: ModuleType, places: Places) -> None:
    if module.__name__.endswith("trainer.trainer"):
        reroute(module.Trainer, "save_checkpoint", "filepath", places.written)
        _root(module.Trainer, places)
    elif module.__name__.endswith("model_checkpoint"):
        reroute(module.ModelCheckpoint, "__init__", "dirpath", places.written)
    else:
        kind = module.CSVLogger if hasattr(module, "CSVLogger") else module.TensorBoardLogger
        reroute(kind, "__init__", "save_dir", places.written)


def _root(kind: Any, places: Places) -> None:
    """Without a folder for everything of its own, a Trainer takes the current one."""
    original = kind.__init__

    def initialise(self: Any, *inputs: Any, **named: Any) -> None:
        root = named.get("default_root_dir") or Path.cwd()
        original(self, *inputs, **{**named, "default_root_dir": places.written(str(root))})

    initialise.__wrapped__ = original  # type: ignore[attr-defined]
    kind.__init__ = initialise
