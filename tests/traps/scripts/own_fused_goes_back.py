"""A convolution network with the program's own fused optimizer, set back to a checkpoint. On a CPU torch's fused form
goes through memory, so that the state must lie as the weights do.
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
for step in range(8):
    loss = model(torch.randn(4, 3, 8, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 1:
        checkpoint = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    if step == 5:
        model.load_state_dict(checkpoint[0])
        optimizer.load_state_dict(checkpoint[1])
    print(step, [state["exp_avg"].stride() == weight.stride() for weight, state in optimizer.state.items()])
