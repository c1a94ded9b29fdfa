"""The loop of the plain script with the lines of a Tuning added: `python tuning.py SCRIPT PROFILE`."""

import importlib
import sys

from blocks import steps

import gputune

tuning = gputune.apply(sys.argv[2], numerics="mixed")  # added

training = importlib.import_module(sys.argv[1])

model = tuning.prepare(training.network().to(training.DEVICE))  # added: prepare
optimizer = training.optimizer_for(model.parameters(), **tuning.optimizer_kwargs())  # added: the arguments
scaler = tuning.grad_scaler()  # added

options = ("amp_dtype", "channels_last", "compile", "fused_optimizer")
for _ in steps(family=tuning.family, options={name: tuning.choice(name) for name in options}):
    inputs, targets = training.batch()
    with tuning.autocast():  # added
        loss = training.loss_of(model(inputs), targets)
    scaler.scale(loss).backward()  # added: the scaler, here and below
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
