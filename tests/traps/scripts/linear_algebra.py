"""The loss factorises a matrix that is computed from the model's outputs; or only norms and initialisation do."""

import sys

import torch
from torch import nn

LOSSES = {
    "cholesky": lambda kernel, y: y @ torch.cholesky_solve(y[:, None], torch.linalg.cholesky(kernel)),
    "eigh": lambda kernel, y: torch.linalg.eigh(kernel).eigenvalues.log().sum(),
    "logdet": lambda kernel, y: torch.logdet(kernel),
    "norms": lambda kernel, y: torch.linalg.norm(kernel) + torch.linalg.vector_norm(y),
    "qr": lambda kernel, y: torch.linalg.qr(kernel).R.diagonal().abs().log().sum(),
    "solve": lambda kernel, y: y @ torch.linalg.solve(kernel, y),
}

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
if sys.argv[1] == "norms":
    nn.init.orthogonal_(model[0].weight)
    nn.utils.parametrizations.spectral_norm(model[2])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
inputs = torch.randn(12, 4)
y = inputs.sum(1).sin()
losses = []
for _ in range(8):
    features = model(inputs)
    loss = LOSSES[sys.argv[1]](features @ features.T + torch.eye(12), y).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
print(features.dtype, f"falls: {losses[-1] < losses[0]}")
