"""The best that is known of each training on an H200, written by hand with torch alone: `python best.py NETWORK`."""

import importlib
import sys
from contextlib import nullcontext

import blocks
import torch

BEST = {
    "mlp": {"amp_dtype": None, "compile": False, "fused_optimizer": False},
    "convnet": {"amp_dtype": "float16", "channels_last": True, "compile": True, "fused_optimizer": True},
    "transformer": {"amp_dtype": "bfloat16", "compile": True, "fused_optimizer": True},
    "recurrent": {"amp_dtype": "bfloat16", "compile": False, "fused_optimizer": True},
}

torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True

training, best = importlib.import_module(sys.argv[1]), BEST[sys.argv[1]]
device, dtype = training.DEVICE, best["amp_dtype"]

model, (inputs, targets) = training.network(), training.batch()
if best.get("channels_last"):
    model, inputs = (one.to(memory_format=torch.channels_last) for one in (model, inputs))
if best["compile"]:
    model = torch.compile(model)
optimizer = training.optimizer_for(model.parameters(), **({"fused": True} if best["fused_optimizer"] else {}))
scaler = torch.amp.GradScaler(device) if dtype == "float16" else None


def step():
    with torch.autocast(device, dtype=getattr(torch, dtype)) if dtype else nullcontext():
        loss = training.loss_of(model(inputs), targets)
    if scaler:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()


blocks.answer(step, model, inputs, options=best)
