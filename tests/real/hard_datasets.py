"""Datasets that are hard on one limit each: `--dataset tests/real/hard_datasets.py:python`."""

import os
import signal
import time
from functools import partial

import torch
from torch.utils.data import Dataset

MIB = 1 << 20


class Computed(Dataset):
    """Samples of this size, each after some work or some waiting."""

    def __init__(self, work, size_bytes=4):
        self.work, self.size_bytes = work, size_bytes

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        made = bytearray(self.size_bytes)  # torch's own filling would use several threads
        made[0] = int(self.work(index)) % 256
        return torch.frombuffer(made, dtype=torch.uint8)


class Growing(Dataset):
    """Keeps something of each sample, as a cache without bounds does."""

    def __init__(self):
        self.kept = []

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        self.kept.append(torch.ones(64 * MIB, dtype=torch.uint8))
        return index


def in_python(index):
    return sum(number * number % 7 for number in range(20_000)) + index


def by_torch(index):
    made = torch.full((1 << 18,), float(index))
    for _ in range(3):
        made = made.sin().exp()
    return made[0]


def asleep(index):
    time.sleep(0.005)
    return index


python = partial(Computed, in_python)
operators = partial(Computed, by_torch)


def computed_16_mib():
    """Each batch of 32 takes 16 MiB."""
    return Computed(in_python, MIB // 2)


def awaited_16_mib():
    """Workers pay for it wherever it runs."""
    return Computed(asleep, MIB // 2)


def awaited_100_mib():
    return Computed(asleep, 100 * MIB // 32)


def killing():
    """Ended by another than the kernel."""
    return Computed(lambda index: os.kill(os.getpid(), signal.SIGKILL))


growing = Growing


def grown():
    """Takes all the memory before there is a dataset."""
    kept = [torch.ones(64 * MIB, dtype=torch.uint8) for _ in range(64)]
    return Computed(in_python, len(kept))
