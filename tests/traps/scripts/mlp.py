"""A plain multilayer perceptron."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs, labels = torch.randn(64, 16), torch.randint(0, 4, (64,))
losses = []
for _ in range(20):
    outputs = model(inputs)
    loss = torch.nn.functional.cross_entropy(outputs, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss {losses[0]:.3f}, falls to half: {losses[-1] < losses[0] / 2}")
print("outputs", outputs.dtype, "loss", loss.dtype)
for name, value in model.state_dict().items():
    print(name, value.dtype, tuple(value.shape), value.is_contiguous())
for parameter in model.parameters():
    print("gradient", parameter.grad.dtype, {name: value.dtype for name, value in optimizer.state[parameter].items()})
print(sum(parameter.numel() for parameter in model.parameters()), torch.rand(2))
