"""A forward that flattens images with view is called without gradients first, once settings are on."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(128, 4)

    def forward(self, images):
        return self.head(self.features(images).view(len(images), -1))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))
for epoch in range(3):
    for _ in range(2):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, f"{nn.functional.cross_entropy(model(images), labels).item():.1f}")
print(model.features[1].num_batches_tracked, [one.is_contiguous() for one in model.state_dict().values()])
