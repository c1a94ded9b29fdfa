"""TensorBoard's events, which TensorFlow writes in C if it is there."""

from ._rerouting import Paths

PATHS: Paths = {
    "torch.utils.tensorboard.writer": [("FileWriter.__init__", "log_dir", "written")],
    "tensorboardX.writer": [("FileWriter.__init__", "logdir", "written")],
}
"""The writers of files below every SummaryWriter, whose own folder thus keeps its name."""
