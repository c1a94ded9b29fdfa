"""The loop of a plain script with a profile's choices written into it by hand, with torch alone:
`python by_hand.py SCRIPT CHOICES`, the choices as JSON, by setting.
"""

import importlib
import json
import sys
from contextlib import nullcontext

import torch
from blocks import log, steps
from shared import DEVICE, optimizer_for

training, choices = importlib.import_module(sys.argv[1]), json.loads(sys.argv[2])
dtype = choices.get("amp_dtype")

if choices.get("matmul_precision") == "tf32":
    torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = choices.get("cudnn_benchmark", False)

torch.manual_seed(0)
model = training.network().to(DEVICE)
if choices.get("channels_last"):
    model = model.to(memory_format=torch.channels_last)
if choices.get("compile"):
    model = torch.compile(model)
optimizer = optimizer_for(model.parameters(), **({"fused": True} if choices.get("fused_optimizer") else {}))
scaler = torch.amp.GradScaler(DEVICE, enabled=dtype == "float16")

for _ in steps():
    inputs, targets = training.batch()
    if choices.get("channels_last"):
        inputs = inputs.to(memory_format=torch.channels_last)
    optimizer.zero_grad()
    with torch.autocast(DEVICE, dtype=getattr(torch, dtype)) if dtype else nullcontext():
        loss = training.loss_of(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    log(loss)
