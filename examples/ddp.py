"""DistributedDataParallel below torchrun: every rank trains the same network on a share of the data.

    gputune check
    gputune tune -o profile.yaml -- torchrun --standalone --nproc-per-node 2 ddp.py
    gputune apply profile.yaml -- torchrun --standalone --nproc-per-node 2 ddp.py

Two ranks suit two CPUs, where gloo connects them and the training takes seconds. On GPUs, which NCCL connects, write
their number instead of 2 and add --large. With --verify all ranks first compare the settings that torch has in effect.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        return x + self.layers(x)


def made_up(count, features):
    """Inputs, and what a fixed random network makes of them."""
    random = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, features, generator=random)
    hidden = torch.tanh(inputs @ torch.randn(features, features, generator=random) / features**0.5)
    return TensorDataset(inputs, hidden @ torch.randn(features, 1, generator=random) / features**0.5)


def train(model, loader, optimizer, device):
    """Train for one epoch; the mean loss of all ranks, and milliseconds a step."""
    total, start = torch.zeros((), device=device), time.perf_counter()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        loss.backward()  # and the gradients are averaged over the ranks
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return float(total) / dist.get_world_size() / len(loader), (time.perf_counter() - start) / len(loader) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--large", action="store_true", help="a network that fills GPUs")
    parser.add_argument("--verify", action="store_true", help="fail where the ranks' settings differ")
    wanted = parser.parse_args()
    features, width, depth, batch = (64, 4096, 8, 4096) if wanted.large else (16, 128, 2, 64)

    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    if wanted.verify:
        import gputune

        gputune.verify_ranks()

    torch.manual_seed(0)
    blocks = (Block(width) for _ in range(depth))
    model = nn.Sequential(nn.Linear(features, width), *blocks, nn.Linear(width, 1)).to(device)
    model = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4 if wanted.large else 1e-3)
    data = made_up(100 * batch * dist.get_world_size(), features)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch, sampler=sampler)
    for epoch in range(wanted.epochs):
        sampler.set_epoch(epoch)  # or every epoch has the same order
        loss, milliseconds = train(model, loader, optimizer, device)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.4f}, {milliseconds:.1f} ms a step on {dist.get_world_size()} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
