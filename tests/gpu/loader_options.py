"""What a DataLoader's options bring a whole training: `python tests/gpu/loader_options.py`, on a GPU.

The ResNet-50 of `unchanged/convnet.py` is trained in bfloat16 on ready images of 224 x 224, in batches of 256 with 12
workers and epochs of 25 steps; after one epoch of each arm, four of each are timed in turn.
"""

import time
from statistics import median
from typing import Any

import torch
from profile_choices import script
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
    net = script("convnet")["network"]().to("cuda", memory_format=torch.channels_last)
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
