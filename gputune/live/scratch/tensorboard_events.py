"""TensorBoard has no variable that turns it off, so its events go to the scratch folder."""

from types import ModuleType

from ._places import Places
from ._rerouting import Paths, reroute_all

PATHS: Paths = {
    "torch.utils.tensorboard.writer": [("FileWriter.__init__", "log_dir", "written")],
    "tensorboardX.writer": [("FileWriter.__init__", "logdir", "written")],
}
"""The writers of files below every SummaryWriter, whose own folder thus keeps its name."""
MODULES = tuple(PATHS)


def redirect(module: ModuleType, places: Places) -> None:
    reroute_all(module, module.__name__, PATHS, places)
