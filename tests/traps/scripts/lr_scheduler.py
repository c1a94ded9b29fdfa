"""Learning rates that change in each step, also where they are tensors, and one group's alone."""

import torch
from torch import nn

torch.manual_seed(0)
one, two = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(one, nn.ReLU(), two)
groups = [{"params": one.parameters(), "lr": 0.1}, {"params": two.parameters(), "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=0.01)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], [3])
inputs = torch.randn(8, 4)
for step in range(7):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, scheduler.get_last_lr(), [group["lr"] for group in optimizer.param_groups])
print(scheduler.state_dict()["_last_lr"])
cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=5)
for step in range(4):
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    cycle.step()
    print(step, [(group["lr"], group["betas"]) for group in optimizer.param_groups])
