"""Datasets that go wrong, each in its own way."""

import multiprocessing
import os
import signal
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Numbers(Dataset):
    def __init__(self, length=256):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.full((64,), index)


class Raises(Numbers):
    def __getitem__(self, index):
        raise ValueError("cannot read sample\nof two lines")


class RaisesLate(Numbers):
    def __getitem__(self, index):
        if index % 8 == 7:
            raise KeyError(index)
        return super().__getitem__(index)


class Hangs(Numbers):
    def __getitem__(self, index):
        time.sleep(3600)


class Killed(Numbers):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Numbers):
    def __getitem__(self, index):
        os._exit(3)


class Crashes(Numbers):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGSEGV)


class OnlyInWorkers(Numbers):
    def __getitem__(self, index):
        return super().__getitem__(index) + torch.utils.data.get_worker_info().id


class Locked(Numbers):
    """Holds a lock that all workers share, as around a file that all of them read."""

    def __init__(self):
        super().__init__()
        self.lock = multiprocessing.Lock()

    def __getitem__(self, index):
        with self.lock:
            time.sleep(0.001)
            return super().__getitem__(index)


class Round(Numbers):
    """Refers to itself, twice."""

    def __init__(self):
        super().__init__()
        self.train, self.test = Numbers(), Numbers()
        self.train.whole = self.test.whole = self


class Texts(Numbers):
    def __getitem__(self, index):
        return f"line {index}"


class Dictionaries(Numbers):
    def __getitem__(self, index):
        return {"ids": torch.full((64,), index), "text": f"line {index}", "nested": {"pair": (index, 1.5)}}


class Uneven(Numbers):
    def __getitem__(self, index):
        return torch.zeros(1 + index % 3)


class Undivided(IterableDataset):
    def __iter__(self):
        return (torch.full((64,), number) for number in range(1000))


class Ends(IterableDataset):
    def __iter__(self):
        return iter(())


def hangs_while_made():
    time.sleep(3600)


def empty():
    return Numbers(0)


def empty_loader():
    return DataLoader(Numbers(0), batch_size=4)


def single():
    return Numbers(1)


def unpicklable():
    data = Numbers()
    data.made_by = lambda: None
    return DataLoader(data, batch_size=8, num_workers=1, multiprocessing_context="spawn")


def unsendable():
    return DataLoader(Numbers(), batch_size=8, collate_fn=_with_lambda)


def _with_lambda(samples):
    return {"batch": torch.stack(samples), "later": lambda: None}


def spawned():
    return DataLoader(Numbers(), batch_size=8, num_workers=1, multiprocessing_context="spawn")


def raises_while_made():
    raise RuntimeError("no such bucket")


def leaves():
    raise SystemExit(2)


def number():
    return 7


NOT_CALLABLE = 7
