"""Weight norm, spectral norm and pruning, which put computed tensors in the place of weights."""

import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

torch.manual_seed(0)
model = nn.Sequential(
    parametrizations.weight_norm(nn.Conv2d(3, 4, 3)),
    nn.ReLU(),
    nn.Flatten(),
    parametrizations.spectral_norm(nn.Linear(144, 8)),
    nn.Linear(8, 2),
)
prune.l1_unstructured(model[4], "weight", amount=0.5)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
for step in range(6):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.0f}", int((model[4].weight == 0).sum()), model[0].weight.dtype)
print({name: (value.dtype, tuple(value.shape)) for name, value in model.state_dict().items()})
