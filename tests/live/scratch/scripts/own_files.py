"""Saves atomically, links the latest, looks for what it saved, and keeps the two latest."""

# ruff: noqa: PT018, PTH105, PTH107, PTH110, PTH123, PTH202, PTH207
import glob
import os
import shutil
from pathlib import Path

import torch

for step in range(4):
    torch.save({"step": step}, "ckpt/step.tmp")
    os.replace("ckpt/step.tmp", f"ckpt/step_{step}.pt")
    assert os.path.exists(f"ckpt/step_{step}.pt") and Path("ckpt", f"step_{step}.pt").is_file()
    assert not os.path.exists("ckpt/step.tmp")
    assert os.path.getsize(f"ckpt/step_{step}.pt") > 100
    if step > 1:
        os.remove(f"ckpt/step_{step - 2}.pt")
        assert not os.path.exists(f"ckpt/step_{step - 2}.pt")
    shutil.copyfile(f"ckpt/step_{step}.pt", "ckpt/best.pt")
    assert torch.load("ckpt/best.pt")["step"] == step
    with open("ckpt/best.pt", "rb") as file:
        assert torch.load(file)["step"] == step
for old in sorted(glob.glob("ckpt/old_*.pt")):
    os.remove(old)
Path("ckpt/step_3.pt").rename("ckpt/last.pt")
assert torch.load("ckpt/last.pt")["step"] == 3
print("fine")
