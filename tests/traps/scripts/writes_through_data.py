"""A forward that counts in a buffer, in a parameter without gradients and through `.data`, and flattens with view."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(128, 4)
        self.register_buffer("counted", torch.zeros(1))
        self.register_buffer("hidden", torch.zeros(1))
        self.replaced = nn.Parameter(torch.zeros(1), requires_grad=False)
        self.written = nn.Parameter(torch.zeros(1), requires_grad=False)

    def forward(self, images):
        self.counted += 1
        self.hidden.data.add_(1)
        self.replaced.data = self.replaced.data + 1
        with torch.no_grad():
            self.written.copy_(self.written + 1)
        return self.head(self.features(images).view(len(images), -1))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.01)
images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))
for step in range(6):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    counts = [one.item() for one in (model.counted, model.hidden, model.replaced, model.written)]
    print(step, f"{loss.item():.1f}", counts)
