"""Models that say themselves what is saved of them: all their attributes, or a copy of them."""

import copy
import io
import pickle

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, inputs):
        return self.layer(inputs)

    def __getstate__(self):
        return self.__dict__


class Other(Net):
    def __getstate__(self):
        return dict(vars(self))

    def __setstate__(self, state):
        self.__dict__.update(state)


torch.manual_seed(0)
inputs = torch.randn(8, 4)
for kind in (Net, Other):
    model = kind()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(buffer, weights_only=False)]
    for one in copies:
        with torch.no_grad():
            print(type(one).__name__, torch.equal(one(inputs), model(inputs)), one._compiled_call_impl)
    print(b"gputune" in pickle.dumps(model))
