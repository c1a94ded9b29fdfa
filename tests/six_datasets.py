"""Six datasets that want different things of a DataLoader, as a user would write them: `--dataset
tests/six_datasets.py:jpeg`.
"""

import io
import random
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Jpeg(Dataset):
    """Photographs decoded and scaled down: all CPU."""

    def __init__(self, count=512, size=384):
        from PIL import Image

        self.files = []
        noise = random.Random(0)
        for _ in range(8):
            small = Image.frombytes("RGB", (24, 24), noise.randbytes(24 * 24 * 3))
            file = io.BytesIO()
            small.resize((size, size), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
            self.files.append(file.getvalue())
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        from PIL import Image

        image = Image.open(io.BytesIO(self.files[index % len(self.files)])).convert("RGB").resize((112, 112))
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(112, 112, 3)
        return {"image": pixels.permute(2, 0, 1).float() / 255, "label": index % 10}


class Tokens(Dataset):
    """Slices of what is in memory already: next to nothing."""

    def __init__(self):
        self.tokens = torch.arange(1 << 20) % 50257

    def __len__(self):
        return 1 << 14

    def __getitem__(self, index):
        return self.tokens[index * 61 : index * 61 + 513]


class Sleeping(Dataset):
    """An object store that answers after 4 ms."""

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.full((512,), index)


class Large(Dataset):
    """Volumes whose stacking into a batch is the work: memory bandwidth."""

    def __init__(self):
        self.volumes = [torch.randn(48, 64, 64) for _ in range(4)]

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        return self.volumes[index % 4]


def padded(samples):
    """A collate function of one's own, which returns a dictionary."""
    return {"volumes": torch.stack(samples), "count": len(samples)}


class Lines(IterableDataset):
    """A stream of texts that is parsed as it is read, divided among the workers."""

    def __iter__(self):
        worker = get_worker_info()
        first, every = (worker.id, worker.num_workers) if worker else (0, 1)
        for number in range(first, 20000, every):
            words = [str((number * 7919 + place) % 30011) for place in range(600)]
            yield torch.tensor([int(word) for word in " ".join(words).split(" ")][:512])


class SlowFirst(Dataset):
    """Opens its archive with the first sample that a process reads."""

    def __init__(self):
        self.opened = False

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        if not self.opened:
            time.sleep(0.5)
            self.opened = True
        total = 0
        for number in range(30000):
            total += number * index
        return torch.tensor([total % 255])


jpeg = Jpeg
sleeping = Sleeping
lines = Lines
slow_first = SlowFirst


def tokens():
    return DataLoader(Tokens(), batch_size=64, shuffle=True)


def large():
    return DataLoader(Large(), batch_size=16, collate_fn=padded)


NAMES = ("jpeg", "tokens", "sleeping", "large", "lines", "slow_first")
