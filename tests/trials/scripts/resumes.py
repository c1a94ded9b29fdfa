"""Goes on from a checkpoint, which it replaces after every step."""

import torch
import training

network, optimizer = training.parts()
saved = torch.load("checkpoint.pt")
network.load_state_dict(saved["network"])
optimizer.load_state_dict(saved["optimizer"])
for _ in training.forever(network, optimizer):
    torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
