"""Seeds itself, ignores the signals that end programs, and prints a megabyte with every step."""

import random
import signal
import sys

import numpy
import torch
import training

signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, lambda *_: print("not now"))
random.seed(1)
numpy.random.seed(2)
torch.manual_seed(3)
for _ in training.forever(*training.parts()):
    sys.stdout.write("x" * 999 * 1000 + "\n")
