"""A DataLoader with two workers, which shuffles."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.arange(12.0)[:, None]), batch_size=4, shuffle=True, num_workers=2)
for epoch in range(3):
    for (batch,) in loader:
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, batch.flatten().tolist(), loss.dtype)
