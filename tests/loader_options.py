"""What a DataLoader's options bring a whole training: `python tests/loader_options.py`, on a GPU.

A ResNet-50 of torch's layers is trained in bfloat16 on ready images of 224 x 224, in batches of 256 with 12 workers and
epochs of 25 steps; after one epoch of each arm, four of each are timed in turn.
"""

import time
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH, WORKERS, STEPS, ROUNDS = 256, 12, 25, 4
FIXED: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "num_workers": WORKERS, "persistent_workers": True}
ARMS: dict[str, dict[str, Any]] = {
    "workers that stay": {},
    "pin_memory": {"pin_memory": True},
    "prefetch_factor 4": {"prefetch_factor": 4},
    "new workers each epoch": {"persistent_workers": False},
}


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
        )
        short = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
        self.short = short if inputs != 4 * width else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet50():
    layers, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, 1 if block else stride))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Images(Dataset):
    def __init__(self, dtype):
        self.dtype, self.images = dtype, torch.randint(0, 256, (64, 3, 224, 224), dtype=torch.uint8)

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        return self.images[index % 64].flip(2).to(self.dtype), index % 1000


def epoch(model, optimizer, loader):
    """Milliseconds of a step."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    for batch in loader:
        images, labels = (part.to("cuda") for part in batch)
        inputs = images.to(memory_format=torch.channels_last).float().div_(255)
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - started) / STEPS


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    net = resnet50().to("cuda", memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for dtype in (torch.float32, torch.uint8):
        loaders = {name: DataLoader(Images(dtype), **{**FIXED, **arm}) for name, arm in ARMS.items()}
        taken: dict[str, list[float]] = {name: [] for name in ARMS}
        for turn in range(1 + ROUNDS):
            for name in list(ARMS)[:: -1 if turn % 2 else 1]:
                milliseconds = epoch(net, sgd, loaders[name])
                taken[name] += [milliseconds] if turn else []
        for name, each in taken.items():
            gain = median(one / other for one, other in zip(taken["workers that stay"], each, strict=True))
            print(f"{dtype} {name}: {median(each):.1f} ms a step, {gain:.2f} times", flush=True)
