"""What torch wraps around a model or an optimizer, in a group of one process: DataParallel, which without GPUs calls
the model it holds; fully_shard, which holds the parameters in its own way; and ZeroRedundancyOptimizer, which holds an
optimizer of torch's inside.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

kind = sys.argv[1]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
if kind == "data_parallel":
    model = nn.DataParallel(model)
else:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
if kind == "fsdp2":
    from torch.distributed.fsdp import fully_shard

    mesh = dist.init_device_mesh("cpu", (1,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
if kind == "zero_redundancy":
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.01)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(8, 4)
for step in range(6):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}", loss.dtype)
print(type(model).__name__, list(model.state_dict()), {type(parameter).__name__ for parameter in model.parameters()})
if kind == "zero_redundancy":
    optimizer.consolidate_state_dict()
    print(optimizer.state_dict()["param_groups"])
if kind != "data_parallel":
    dist.destroy_process_group()
