"""Evaluates 60 batches of a DataLoader, or 300 if `long`, and writes down what it found. With `waits` these are waited
for; with `twice` a second loader follows, and with `trains` a training.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from training import forever, model


class Data(Dataset):
    def __len__(self):
        return 600 if "long" in sys.argv else 120

    def __getitem__(self, number):
        if "waits" in sys.argv:
            time.sleep(0.004)
        return torch.full((64,), float(number))


network, seen = model().eval(), []
training = DataLoader(Data(), batch_size=2, shuffle=True) if "trains" in sys.argv else None
for place in range(2 if "twice" in sys.argv else 1):
    with torch.no_grad():
        for x in DataLoader(Data(), batch_size=2):
            time.sleep(0.001)
            seen.append(int(network(x).argmax(-1)[0]))
    if training is None:
        Path(f"predictions{place}.json").write_text(json.dumps(seen))
if training is not None:
    for _ in forever(network, torch.optim.AdamW(network.parameters())):
        pass
