"""Copies of a model that share its attributes, as meta-learning makes them, and replicas; with weights of their own."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, inputs):
        return self.layer(inputs)


def with_zeros(other):
    other._modules = {"layer": nn.Linear(4, 2)}
    for parameter in other.parameters():
        nn.init.zeros_(parameter)
    return other


torch.manual_seed(0)
model, inputs = Net(), torch.ones(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    clone = Net.__new__(Net)
    clone.__dict__ = model.__dict__.copy()
    print(step, [with_zeros(one)(inputs).abs().sum().item() for one in (clone, model._replicate_for_data_parallel())])
del model, optimizer
print(clone(inputs).abs().sum().item())
