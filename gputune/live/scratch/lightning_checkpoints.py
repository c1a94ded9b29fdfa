"""Lightning: the folders of a Trainer, of its checkpoints and of its loggers; Fabric's too."""

import os
from types import ModuleType
from typing import Any

from ._rerouting import Paths, Places, reroute, wrap

_PATHS: Paths = {
    "fabric.fabric": [
        ("Fabric.save", "path", "written"),
        ("Fabric.load", "path", "read"),
        ("Fabric.load_raw", "path", "read"),
    ],
    "fabric.loggers.csv_logs": [("CSVLogger.__init__", "root_dir", "written")],
    "fabric.loggers.tensorboard": [("TensorBoardLogger.__init__", "root_dir", "written")],
    "fabric.plugins.io.torch_io": [
        ("TorchCheckpointIO.save_checkpoint", "path", "written"),
        ("TorchCheckpointIO.load_checkpoint", "path", "read"),
        # No file of the user's is removed, whatever a callback remembers of an earlier training.
        ("TorchCheckpointIO.remove_checkpoint", "path", "written"),
    ],
    "fabric.utilities.cloud_io": [("_load", "path_or_url", "read"), ("_atomic_save", "filepath", "written")],
    "pytorch.callbacks.model_checkpoint": [
        ("ModelCheckpoint.__init__", "dirpath", "written"),
        ("ModelCheckpoint.to_yaml", "filepath", "written"),
    ],
    "pytorch.callbacks.on_exception_checkpoint": [("OnExceptionCheckpoint.__init__", "dirpath", "written")],
    "pytorch.core.module": [
        ("LightningModule.to_onnx", "file_path", "written"),
        ("LightningModule.to_torchscript", "file_path", "written"),
    ],
    "pytorch.loggers.csv_logs": [("CSVLogger.__init__", "save_dir", "written")],
    "pytorch.loggers.mlflow": [("MLFlowLogger.__init__", "save_dir", "written")],
    "pytorch.loggers.tensorboard": [("TensorBoardLogger.__init__", "save_dir", "written")],
    "pytorch.loggers.wandb": [("WandbLogger.__init__", "save_dir", "written")],
    "pytorch.trainer.trainer": [("Trainer.save_checkpoint", "filepath", "written")],
}
_PACKAGES = {"fabric": ("lightning.fabric", "lightning_fabric"), "pytorch": ("lightning.pytorch", "pytorch_lightning")}
PATHS: Paths = {
    f"{package}.{rest}": functions
    for name, functions in _PATHS.items()
    for part, _, rest in [name.partition(".")]
    for package in _PACKAGES[part]
}
"""By the full names of the modules in either way to install Lightning."""
_NO_PATHS = ("best", "last", "hpc", "registry")


def redirect(module: ModuleType, places: Places) -> None:
    def initialise(original: Any, self: Any, *inputs: Any, **named: Any) -> None:
        """Without a folder for everything of its own, a Trainer takes the one in a variable, or the current one."""
        root = named.get("default_root_dir") or os.environ.get("PL_TRAINER_DEFAULT_ROOT_DIR") or os.curdir
        original(self, *inputs, **{**named, "default_root_dir": places.written(root)})

    if not module.__name__.endswith(".trainer.trainer"):
        return
    for name in ("fit", "validate", "test", "predict"):
        reroute(module, f"Trainer.{name}", "ckpt_path", lambda path: path if path in _NO_PATHS else places.read(path))
    wrap(module.Trainer, "__init__", initialise)
