"""Two tasks in turn, of which each has a head of its own. AdamW steps and decays the weights that have gradients."""

import torch
from torch import nn


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(32, 1), nn.Linear(32, 1)])

    def forward(self, inputs):
        hidden = self.trunk(inputs)
        return [head(hidden) for head in self.heads]


torch.manual_seed(0)
model = Tasks()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
inputs = torch.randn(32, 8)
losses = []
for number in range(12):
    output = model(inputs)[number % 2]
    loss = (output[:, 0] - inputs[:, number % 2]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"losses {losses[0]:.1f} and {losses[1]:.1f}, fall: {losses[-1] < losses[1]}")
print([int(optimizer.state[head.weight]["step"]) for head in model.heads])
