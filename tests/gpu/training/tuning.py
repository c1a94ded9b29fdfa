"""The loop of the plain script with the lines of a Tuning added: `python tuning.py NETWORK PROFILE`."""

import importlib
import sys

import blocks

import gputune

tuning = gputune.apply(sys.argv[2], numerics="mixed")  # added

training = importlib.import_module(sys.argv[1])

model = tuning.prepare(training.network())  # added: prepare
optimizer = training.optimizer_for(model.parameters(), **tuning.optimizer_kwargs())  # added: the arguments
scaler = tuning.grad_scaler()  # added
inputs, targets = training.batch()


def step():
    with tuning.autocast():  # added
        loss = training.loss_of(model(inputs), targets)
    scaler.scale(loss).backward()  # added: the scaler, here and below
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


options = ("amp_dtype", "channels_last", "compile", "fused_optimizer")
blocks.answer(step, model, inputs, family=tuning.family, options={name: tuning.choice(name) for name in options})
