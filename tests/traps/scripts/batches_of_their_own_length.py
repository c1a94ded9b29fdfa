"""Sequences whose length is another one in each batch, compiled."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(16, 8), nn.Linear(8, 8), nn.Linear(8, 16)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens)).relu())


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(30):
    tokens = torch.randint(0, 16, (4, 3 + step % 11))
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, f"{loss.item():.1f}")
print(torch._dynamo.utils.counters["stats"]["unique_graphs"] < 2)
