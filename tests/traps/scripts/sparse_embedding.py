"""An embedding with sparse gradients, and SparseAdam beside AdamW; then one optimizer for both kinds. The embedding may
come into use only after some steps.
"""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(20, 8, sparse=True, mode="mean")
        self.head = nn.Linear(8, 2)

    def forward(self, tokens, warm):
        return self.head(torch.ones(len(tokens), 8) if warm else self.embedding(tokens))


def train(model, *optimizers, warm=0):
    for step in range(warm + 5):
        loss = nn.functional.cross_entropy(model(tokens, warm=step < warm), labels)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    print(loss.dtype, model.embedding.weight.grad.layout, model.head.weight.grad.layout)


torch.manual_seed(0)
tokens, labels = torch.randint(0, 20, (8, 5)), torch.randint(0, 2, (8,))
model = Net()
if "later" in sys.argv:
    train(model, torch.optim.SGD(model.parameters(), lr=0.01), warm=4)
    sys.exit()
train(
    model,
    torch.optim.SparseAdam(list(model.embedding.parameters()), lr=0.01),
    torch.optim.AdamW(model.head.parameters(), lr=0.01),
)
model = Net()
train(model, torch.optim.SGD(model.parameters(), lr=0.01))
