"""Layers are frozen at first, and join the optimizer later; then one is frozen again."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model[0].requires_grad_(False)
optimizer = torch.optim.AdamW(model[2].parameters(), lr=0.01)
inputs = torch.randn(8, 4)
for step in range(10):
    if step == 4:
        model[0].requires_grad_(True)
        optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.001})
    if step == 7:
        model[2].requires_grad_(False)
        model[2].weight.grad = None
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    counts = [state["step"].item() for state in optimizer.state_dict()["state"].values()]
    print(step, counts, loss.dtype, [group["fused"] for group in optimizer.state_dict()["param_groups"]])
