"""A model whose forward, the one that is named, does what bears no lower precision, or switches it off itself."""

import sys

import torch
from torch import nn


class Net(nn.Module):
    digits = 1

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 1)


class Assertion(Net):
    """Asserts the dtype of what its layers compute."""

    digits = 3

    def forward(self, inputs):
        hidden = self.one(inputs)
        assert hidden.dtype == inputs.dtype, hidden.dtype
        return self.two(hidden.relu())


class WrongDtype(Net):
    """Writes a layer's output into a tensor of a dtype of its own."""

    digits = 3

    def forward(self, inputs):
        kept = torch.zeros(len(inputs), 8)
        kept[::2] = self.one(inputs[::2])
        kept.index_add_(0, torch.arange(len(inputs)), self.one(inputs))
        return self.two(kept)


class AutocastOff(Net):
    """Switches autocast off for a part of itself, as attention in full precision does."""

    def forward(self, inputs):
        with torch.autocast("cpu", enabled=False):
            precise = self.one(inputs.float())
            assert precise.dtype == torch.float32
        return self.two(precise)


class Bce(Net):
    """Calls BCELoss, which raises under autocast."""

    def forward(self, inputs):
        labels = (inputs.sum(1, keepdim=True) > 0).float()
        return nn.BCELoss()(self.two(self.one(inputs).relu()).sigmoid(), labels)


class Direct(Net):
    """Is called by its forward, as its layers are, and so without any of what torch does around it."""

    digits = 3

    def forward(self, inputs):
        return self.two.forward(self.one.forward(inputs).relu())


torch.manual_seed(0)
model = globals()[sys.argv[1]]()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(16, 4)
call = model.forward if isinstance(model, Direct) else model
for step in range(6):
    outputs = call(inputs)
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.{model.digits}f}", outputs.dtype, loss.dtype)
