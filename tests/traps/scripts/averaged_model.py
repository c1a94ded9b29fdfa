"""torch.optim.swa_utils.AveragedModel, before the first step and in the middle; then its BatchNorm is updated."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
averages = [AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))]
for step in range(8):
    if step == 4:
        averages.append(AveragedModel(model))
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for average in averages:
        average.update_parameters(model)
for average in averages:
    update_bn([images], average)
    average.eval()
    print(average.n_averaged.item(), list(average.state_dict()), average(images).dtype)
    changed = [torch.equal(one, other) for one, other in zip(average.parameters(), model.parameters(), strict=True)]
    print(changed, all(parameter.isfinite().all() for parameter in average.parameters()))
