"""Ranks train one model together. With the name of a signal rank 1 sends it to itself after some steps."""

import os
import signal
import sys

import torch
import torch.distributed as dist
import training
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
network = nn.parallel.DistributedDataParallel(training.model())
for number, _ in enumerate(training.forever(network, torch.optim.AdamW(network.parameters()))):
    if number == 6 and dist.get_rank() == 1 and sys.argv[1:]:
        os.kill(os.getpid(), signal.Signals[sys.argv[1]])
