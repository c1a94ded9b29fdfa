"""DistributedDataParallel of one process, for which torch compiles a model in as many parts as it has buckets, unless
these are smaller than the first one.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.Tanh()) for _ in range(3)], nn.Linear(512, 1))
wrapped = DistributedDataParallel(model, bucket_cap_mb=0.5 if "small" in sys.argv else 1)
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    loss = (wrapped(torch.randn(8, 512)) - 1).square().mean()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.1f}")
dist.destroy_process_group()
