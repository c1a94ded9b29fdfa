"""A training loop as users write it, which knows nothing of gputune: `python plain.py NETWORK`."""

import importlib
import sys

import blocks

training = importlib.import_module(sys.argv[1])

model = training.network()
optimizer = training.optimizer_for(model.parameters())
inputs, targets = training.batch()


def step():
    loss = training.loss_of(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


blocks.answer(step, model, inputs)
