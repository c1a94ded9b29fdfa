"""TensorBoard has no variable that turns it off, so its events go to the scratch folder."""

import functools
from types import ModuleType
from typing import Any

from ._places import Places

MODULES = ("torch.utils.tensorboard.writer", "tensorboardX.writer")


def redirect(module: ModuleType, places: Places) -> None:
    kind: Any = module.SummaryWriter
    original = kind.__init__
    named_as = "log_dir" if module.__name__.startswith("torch.") else "logdir"

    @functools.wraps(original)
    def initialise(self: Any, *inputs: Any, **named: Any) -> None:
        given = inputs[0] if inputs else named.pop(named_as, None)
        # Without a name the writer makes one below runs/ in the current folder.
        place = places.written(given or "runs/events")
        original(self, place, *inputs[1:], **named)

    kind.__init__ = initialise
