"""What is put in fails in a forward that has drawn random numbers by then; the order of samples follows from them."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.dropout = nn.Linear(4, 8), nn.Linear(8, 1), nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, inputs):
        hidden = self.one(self.norm(self.dropout(inputs)))
        kept = torch.zeros(len(inputs), 8).index_add(0, torch.arange(len(inputs)), hidden)
        return self.two(kept)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(8, 4)
for step in range(5):
    order = torch.randperm(8)
    loss = model(inputs[order]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", order.tolist(), model.norm.num_batches_tracked.item())
