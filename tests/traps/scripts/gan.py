"""A GAN: two models, each with an optimizer of its own, and the generator's loss goes through the discriminator."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
for_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
for_discriminator = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
for _ in range(8):
    real, noise = torch.randn(32, 2), torch.randn(32, 4)
    made = generator(noise)
    for_discriminator.zero_grad()
    loss = criterion(discriminator(real), ones) + criterion(discriminator(made.detach()), zeros)
    loss.backward()
    for_discriminator.step()
    for_generator.zero_grad()
    fooled = criterion(discriminator(made), ones)
    fooled.backward()
    for_generator.step()
print(loss.dtype, fooled.dtype, made.dtype, bool(loss.isfinite() and fooled.isfinite()))
for model, optimizer in ((generator, for_generator), (discriminator, for_discriminator)):
    print(list(model.state_dict()), sorted(optimizer.state_dict()["param_groups"][0].items()))
print(torch.rand(1))
