"""Two tasks in turn, of which each has a head of its own, and a shorter batch at the end of each pass. AdamW steps and
decays the weights that have gradients."""

import torch
from torch import nn


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.heads = nn.ModuleList([nn.Linear(32, 1), nn.Linear(32, 1)])

    def forward(self, inputs):
        hidden = self.trunk(inputs)
        return [head(hidden) for head in self.heads]


torch.manual_seed(0)
model = Tasks()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
inputs = torch.randn(32, 1, 4, 4)
losses = []
for number in range(12):
    batch = inputs[: 20 if number % 6 == 5 else 32]
    output = model(batch)[number % 2]
    loss = (output[:, 0] - batch[:, 0, number % 2, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"losses {losses[0]:.1f} and {losses[1]:.1f}, fall: {losses[-1] < losses[1]}")
print([int(optimizer.state[head.weight]["step"]) for head in model.heads])
