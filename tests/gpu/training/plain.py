"""A training loop as users write it, which knows nothing of gputune: `python plain.py SCRIPT`."""

import importlib
import sys

from blocks import steps

training = importlib.import_module(sys.argv[1])

model = training.network().to(training.DEVICE)
optimizer = training.optimizer_for(model.parameters())

parameters = sum(one.numel() for one in model.parameters())
for _ in steps(parameters=parameters, inputs=list(training.batch()[0].shape)):
    inputs, targets = training.batch()
    loss = training.loss_of(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
