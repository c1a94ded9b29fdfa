"""Gradients of activations, which hooks turn into arrays: hooks of the forward, from the start or later; or of a module
that gets its hook in the middle of the training.
"""

import sys

import torch
from torch import nn

HOW = sys.argv[1]
seen = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, inputs):
        hidden = self.first(inputs).relu()
        if HOW == "early" or (HOW == "late" and step > 4):
            hidden.register_hook(lambda gradient: seen.append(gradient.numpy().dtype.name))
        return self.second(hidden)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs, targets = torch.randn(32, 8), torch.randint(0, 4, (32,))
for step in range(9):
    if HOW == "module" and step == 5:
        model.first.register_forward_hook(lambda module, given, output: seen.append(output.detach().numpy().dtype.name))
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.1f}", seen)
