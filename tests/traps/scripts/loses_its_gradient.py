"""A forward that cuts the graph at what is in half precision, as quantised code does."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, inputs):
        outputs = self.second(self.first(inputs).relu())
        return outputs.float().detach() if outputs.dtype == torch.bfloat16 else outputs


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs, targets = torch.randn(32, 8), torch.randint(0, 4, (32,))
for step in range(5):
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
