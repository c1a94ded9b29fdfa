"""torch.export of the model in the middle of training, and in its first steps."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(16, 4)
for step in range(5):
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    if step in (0, 4):
        exported = torch.export.export(model, (inputs,))
        print(step, [str(node.target) for node in exported.graph.nodes], list(exported.state_dict))
print(loss.dtype)
