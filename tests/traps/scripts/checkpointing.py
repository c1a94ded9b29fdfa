"""Gradient checkpointing, which computes a part of the model again during backward; dropout draws the same again.

Reentrant, that part runs without gradients first. In sequence, no module but those within is called. Selective, what
the policy names is kept, and the rest is computed again.
"""

import sys
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

selective = "selective" in sys.argv
options = {"use_reentrant": "reentrant" in sys.argv}
if selective:
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    def policy(ctx, op, *args, **kwargs):
        kept = op == torch.ops.aten.addmm.default
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    options["context_fn"] = partial(create_selective_checkpoint_contexts, policy)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.1)) for _ in range(3))
        self.last = nn.Linear(16, 1)

    def forward(self, inputs):
        hidden = self.first(inputs)
        for block in self.blocks:
            hidden = checkpoint(block, hidden, **options)
        return self.last(hidden)


torch.manual_seed(0)
model = Net()
in_sequence = nn.Sequential(model.first, *model.blocks, model.last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs = torch.randn(32, 8)
for step in range(6):
    output = checkpoint_sequential(in_sequence, 3, inputs, **options) if "sequence" in sys.argv else model(inputs)
    loss = (output - inputs[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    gradients = [parameter.grad.abs().sum().item() > 0 for parameter in model.parameters()]
    print(step, f"{loss.item():.{4 if selective else 1}f}", gradients)
    optimizer.step()
