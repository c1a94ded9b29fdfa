"""An embedding with sparse gradients, and SparseAdam beside AdamW; then one optimizer for both kinds."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(20, 8, sparse=True, mode="mean")
        self.head = nn.Linear(8, 2)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


def train(model, *optimizers):
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(tokens), labels)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    print(loss.dtype, model.embedding.weight.grad.layout, model.head.weight.grad.layout)


torch.manual_seed(0)
tokens, labels = torch.randint(0, 20, (8, 5)), torch.randint(0, 2, (8,))
model = Net()
train(
    model,
    torch.optim.SparseAdam(list(model.embedding.parameters()), lr=0.01),
    torch.optim.AdamW(model.head.parameters(), lr=0.01),
)
model = Net()
train(model, torch.optim.SGD(model.parameters(), lr=0.01))
