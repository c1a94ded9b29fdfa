"""Its samples are waited for. With a number its DataLoader has so many workers of its own; with `short` an epoch has 8
batches, and with `ends` there are eight of these.
"""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset
from training import parts


class Slow(Dataset):
    def __len__(self):
        return 64 if "short" in sys.argv else 4096

    def __getitem__(self, number):
        time.sleep(0.004)
        return torch.full((64,), float(number)), number % 10


network, optimizer = parts()
own = {"num_workers": int(sys.argv[1])} if sys.argv[1:2] and sys.argv[1].isdigit() else {}
for _ in range(8 if "ends" in sys.argv else 1 << 30):
    for x, y in DataLoader(Slow(), batch_size=8, shuffle=True, **own):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()
