"""A functional embedding whose gradients become sparse after some steps."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.layer = nn.Parameter(torch.randn(10, 8)), nn.Linear(8, 3)

    def forward(self, index, sparse):
        return self.layer(nn.functional.embedding(index, self.weight, sparse=sparse))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(9):
    loss = model(torch.tensor([1, 2]), step > 4).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", model.weight.grad.layout)
