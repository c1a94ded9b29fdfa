"""A forward that flattens images with view, which channels_last does not allow."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(128, 4)

    def forward(self, images):
        return self.head(self.features(images).view(len(images), -1))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))
for step in range(6):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}")
print([value.is_contiguous() for value in model.state_dict().values()])
print([state["momentum_buffer"].is_contiguous() for state in optimizer.state_dict()["state"].values()])
