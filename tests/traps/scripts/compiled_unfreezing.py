"""A pretrained body is frozen first and unfrozen in two steps, each of which adds its weights to the optimizer."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 2)
model = nn.Sequential(body, head)
body.requires_grad_(False)
optimizer = torch.optim.AdamW(head.parameters(), lr=0.01)
for part in (head, body[2], body[0]):
    if part is not head:
        part.requires_grad_(True)
        optimizer.add_param_group({"params": part.parameters()})
    before = [weight.detach().clone() for weight in model.parameters()]
    for _ in range(4):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print([not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)])
