"""Models that return a named tuple, a dict of a class of its own, a dataclass, nested tuples, distributions, and more;
if so asked, only one that returns an object of a class that nobody else knows.
"""

import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn
from torch.distributions import Categorical

Named = namedtuple("Named", "logits hidden count")


class Output(OrderedDict):
    """As the outputs of transformers: items are attributes too, and setting one sets the other."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        if name in self:
            super().__setitem__(name, value)
        super().__setattr__(name, value)


class Strict(dict):
    """Needs an argument, and allows no new items."""

    def __init__(self, logits):
        super().__init__(logits=logits)

    def __setitem__(self, key, value):
        if key not in self:
            raise KeyError(key)
        super().__setitem__(key, value)


@dataclass(frozen=True)
class Data:
    logits: Any
    loss: Any = None
    words: tuple = ("one", 2, None)


class Holder:
    def __init__(self, logits):
        self.logits = logits


class Net(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.make = make

    def forward(self, inputs):
        return self.make(self.layer(inputs))


def shown(output):
    if isinstance(output, torch.Tensor):
        return str(output.dtype)
    if isinstance(output, dict):
        return {key: shown(value) for key, value in output.items()}
    if isinstance(output, (tuple, list)):
        return [shown(value) for value in output]
    if isinstance(output, Data):
        return {field.name: shown(getattr(output, field.name)) for field in fields(output)}
    return str(output.logits.dtype) if isinstance(output, Categorical) else type(output).__name__


KINDS = {
    "named": lambda logits: Named(logits, logits * 2, 3),
    "output": lambda logits: Output(logits=logits, hidden=(logits, [logits])),
    "strict": Strict,
    "data": lambda logits: Data(logits, loss=logits.sum()),
    "nested": lambda logits: (logits, (logits, [logits, {"deep": (logits,)}]), None, "word"),
    "list": lambda logits: [logits],
    "policy": lambda logits: Categorical(logits=logits),
    "policy and value": lambda logits: {"policy": Categorical(logits=logits), "logits": logits},
    "size": lambda logits: (logits, logits.shape, torch.max(logits, dim=1)),
}
KINDS = {"object": Holder} if "object" in sys.argv else KINDS
READ = dict.fromkeys(("output", "data", "object", "policy"), lambda output: output.logits)
torch.manual_seed(0)
inputs = torch.randn(8, 4)
for name, make in KINDS.items():
    model = Net(make)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(4):
        output = model(inputs)
        first = READ.get(name, lambda output: output["logits"] if isinstance(output, dict) else output[0])(output)
        optimizer.zero_grad()
        first.square().mean().backward()
        optimizer.step()
    print(name, type(output).__name__, shown(output))
