"""DistributedDataParallel under torchrun with two processes, which must stay alike; no_sync while accumulating."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
wrapped = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(wrapped.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
for _ in range(6):
    optimizer.zero_grad()
    with wrapped.no_sync():
        nn.functional.cross_entropy(wrapped(images[:4]), labels[:4]).backward()
    nn.functional.cross_entropy(wrapped(images[4:]), labels[4:]).backward()
    optimizer.step()
mine = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
others = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(others, mine)
outputs = wrapped(images)
if dist.get_rank() == 0:
    print(torch.equal(*others), list(wrapped.state_dict()), outputs.dtype, flush=True)
dist.barrier()
dist.destroy_process_group()
