"""A plain convolutional network with BatchNorm; its checkpoint is laid out as any other."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
images, labels = torch.randn(16, 3, 8, 8), torch.randint(0, 4, (16,))
losses = []
for _ in range(15):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss {losses[0]:.3f}, falls to half: {losses[-1] < losses[0] / 2}")
for name, value in model.state_dict().items():
    print(name, value.dtype, tuple(value.shape))
print("batches", model[1].num_batches_tracked.item())
torch.save(model.state_dict(), "model.pt")
print(all(one.shape == model.state_dict()[name].shape for name, one in torch.load("model.pt").items()))
