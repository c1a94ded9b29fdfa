"""TensorBoard has no variable that turns it off, so its events go to the scratch folder."""

from ._rerouting import Paths

PATHS: Paths = {
    "torch.utils.tensorboard.writer": [("FileWriter.__init__", "log_dir", "written")],
    "tensorboardX.writer": [("FileWriter.__init__", "logdir", "written")],
}
"""The writers of files below every SummaryWriter, whose own folder thus keeps its name."""
