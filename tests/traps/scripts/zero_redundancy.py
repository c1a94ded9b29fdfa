"""ZeroRedundancyOptimizer, which holds an optimizer of torch's inside, in a group of one process."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.01)
inputs = torch.randn(8, 4)
for step in range(6):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}", loss.dtype)
optimizer.consolidate_state_dict()
print(optimizer.state_dict()["param_groups"])
dist.destroy_process_group()
