"""Its samples are waited for. With an argument its DataLoader has a number of workers of its own."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset
from training import parts


class Slow(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, number):
        time.sleep(0.004)
        return torch.full((64,), float(number)), number % 10


network, optimizer = parts()
own = {"num_workers": int(sys.argv[1])} if len(sys.argv) > 1 else {}
while True:
    for x, y in DataLoader(Slow(), batch_size=8, shuffle=True, **own):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()
