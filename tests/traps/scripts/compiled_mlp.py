"""A plain multilayer perceptron that torch.compile takes whole, and whose last batch is smaller."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs = torch.randn(40, 8)
targets = inputs.sum(1, keepdim=True)
losses = []
for _ in range(3):
    for batch, target in zip(inputs.split(16), targets.split(16), strict=True):
        loss = torch.nn.functional.mse_loss(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(f"loss {losses[0]:.2f}, falls: {losses[-1] < losses[0]}", loss.dtype)
print(list(model.state_dict()), type(model).__name__)
model.eval()
with torch.no_grad():
    print(model(inputs).dtype)
