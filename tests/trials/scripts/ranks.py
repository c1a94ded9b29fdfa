"""Two ranks train one model together."""

import torch
import torch.distributed as dist
import training
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
network = nn.parallel.DistributedDataParallel(training.model())
for _ in training.forever(network, torch.optim.AdamW(network.parameters())):
    pass
