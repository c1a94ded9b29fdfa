"""A vision transformer below torchrun in FP32; with --by-hand in mixed precision, channels_last, fused and compiled."""

import os
import sys

import models
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(sys.argv[1])
BY_HAND = "--by-hand" in sys.argv
rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank) if models.GPU else torch.device("cpu")
if models.GPU:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if models.GPU else "gloo")
torch.manual_seed(0)
model, batch, sample = models.vit()
model = model.to(device)
if BY_HAND:
    models.flags_by_hand()
    model = model.to(memory_format=torch.channels_last)
    model.compile()
model = DistributedDataParallel(model, device_ids=[rank] if models.GPU else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"fused": True} if BY_HAND else {}))
samples = [sample() for _ in range(batch)]
inputs = {name: torch.stack([one[name] for one in samples]).to(device) for name in samples[0]}
for _ in range(STEPS):
    optimizer.zero_grad()
    with torch.autocast(device.type, torch.bfloat16, enabled=BY_HAND):
        loss = model(**inputs).loss
    loss.backward()
    optimizer.step()
weights = torch.cat([one.detach().flatten()[:1000] for one in model.parameters()])
mean = weights.clone()
dist.all_reduce(mean)
same = torch.allclose(mean / dist.get_world_size(), weights, atol=1e-6)
if dist.get_rank() == 0:
    print(f"loss {loss.item():.1f}, replicas equal: {same}")
dist.destroy_process_group()
