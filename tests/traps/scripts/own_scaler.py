"""The program's own autocast to float16 with a loss scaler, which it unscales to clip the gradients."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
inputs = torch.randn(16, 4)
for step in range(6):
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(inputs)
        loss = outputs.square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, f"{loss.item():.3f}", outputs.dtype, scaler.get_scale())
