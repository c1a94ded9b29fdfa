"""Loads a plain checkpoint again in the middle of training: what was saved before the first step, and a later one."""

import copy

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
inputs = torch.randn(8, 4)


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()


def show(when):
    saved = optimizer.state_dict()
    print(when, saved["param_groups"], [(state["step"], state["step"].device) for state in saved["state"].values()])


first = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
train(1)
second = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
train(4)
show("trained")
third = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
for weights, state in (second, third, first):
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    show("loaded")
    train(3)
    show("and trained")
