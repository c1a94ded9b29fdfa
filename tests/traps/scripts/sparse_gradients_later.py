"""An embedding with sparse gradients that comes into use only after some steps."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(20, 8, sparse=True, mode="mean")
        self.head = nn.Linear(8, 2)

    def forward(self, tokens, warm):
        features = torch.ones(len(tokens), 8) if warm else self.embedding(tokens)
        return self.head(features)


torch.manual_seed(0)
tokens, labels = torch.randint(0, 20, (8, 5)), torch.randint(0, 2, (8,))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(8):
    loss = nn.functional.cross_entropy(model(tokens, warm=step < 4), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, model.embedding.weight.grad is None, f"{loss.item():.1f}")
