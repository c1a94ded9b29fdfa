"""The program's forward raises now and then, after it has counted, taken a sample or normalised a batch."""

import sys

import torch
from torch import nn


class Bad(RuntimeError):
    pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm, self.calls, self.seen = nn.Linear(4, 2), nn.BatchNorm1d(4), 0, []

    def forward(self, inputs):
        self.calls += 1
        self.seen.append(next(samples))
        hidden = self.norm(inputs)
        if self.seen[-1] in (3, 6):
            raise KINDS[sys.argv[1]]
        if self.seen[-1] == 7:
            torch.zeros(2).double() @ torch.zeros(2)
        return self.layer(hidden)


KINDS = {"value": ValueError("short batch"), "words": RuntimeError("wrong dtype"), "derived": Bad("stride")}
torch.manual_seed(0)
samples = iter(range(99))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10):
    try:
        loss = model(torch.randn(8, 4)).square().mean()
    except (ValueError, RuntimeError) as error:
        print(step, "skipped:", type(error).__name__)
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.calls, model.seen, model.norm.num_batches_tracked.item(), next(samples), torch.rand(1).item())
