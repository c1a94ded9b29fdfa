"""Saves a checkpoint where no room is left."""

import errno
import os

import training

for _ in training.forever(*training.parts()):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "checkpoint.pt")
