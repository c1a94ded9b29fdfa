"""The program uses channels_last itself, and looks at the layout of what comes out."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images = torch.randn(4, 3, 8, 8).to(memory_format=torch.channels_last)
for step in range(5):
    outputs = model(images)
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, outputs.is_contiguous(memory_format=torch.channels_last), f"{loss.item():.2f}")
print([value.is_contiguous(memory_format=torch.channels_last) for value in model.state_dict().values()])
