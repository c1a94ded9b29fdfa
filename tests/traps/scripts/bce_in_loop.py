"""BCELoss, which raises under autocast, on the outputs of a model that ends with a sigmoid and is sure of the wrong."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1), torch.nn.Sigmoid())
torch.nn.init.constant_(model[2].bias, 12.0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
criterion = torch.nn.BCELoss()
inputs = torch.randn(32, 8)
labels = (inputs.sum(1, keepdim=True) > 0).float()
for step in range(12):
    loss = criterion(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", loss.dtype)
