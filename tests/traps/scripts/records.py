"""A model keeps records of its calls in lists and tables, which the program adds to and reads after the training."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.records, self.features = [], {"all": []}

    def forward(self, inputs):
        outputs = self.layer(inputs)
        self.last = {"outputs": outputs.detach()}
        self.records.append(self.last)
        self.features["all"].append(outputs.detach())
        return outputs


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(6):
    loss = model(torch.ones(8, 4)).square().mean()
    model.last["finite"] = bool(loss.isfinite())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print([record["finite"] for record in model.records], {one.numpy().dtype for one in model.features["all"]})
