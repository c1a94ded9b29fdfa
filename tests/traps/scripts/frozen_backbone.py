"""A frozen backbone under no_grad before the head that is trained, and a teacher whose outputs are only compared."""

import torch
from torch import nn

torch.manual_seed(0)
backbone, head, teacher = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(4, 3)
backbone.requires_grad_(False)
optimizer = torch.optim.AdamW(head.parameters(), lr=0.01)
inputs = torch.randn(8, 4)
for step in range(6):
    with torch.no_grad():
        features = backbone(inputs)
        wanted = teacher(inputs).softmax(1)
    again = backbone(inputs)
    loss = nn.functional.cross_entropy(head(features), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", torch.equal(again, features), again.dtype, again.requires_grad)
