"""The program's own autocast around model and loss: the outputs are in half precision, as it expects."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs = torch.randn(16, 4)
for step in range(6):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(inputs)
        loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}", outputs.dtype, loss.dtype)
