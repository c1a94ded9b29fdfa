"""A graph convolution whose adjacency matrix is sparse, multiplied by torch.sparse.mm."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, features, neighbours):
        hidden = torch.sparse.mm(neighbours, self.first(features)).relu()
        return torch.sparse.mm(neighbours, self.second(hidden))


torch.manual_seed(0)
features, neighbours = torch.randn(20, 8), (torch.rand(20, 20) > 0.8).float().to_sparse()
labels = torch.randint(0, 3, (20,))
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(5):
    loss = nn.functional.cross_entropy(model(features, neighbours), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype)
