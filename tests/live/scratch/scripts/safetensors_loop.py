"""Saves weights in all ways of safetensors, and reads them again."""

import sys

import numpy
import safetensors.numpy
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Linear(3, 2)
weights = {name: one.detach().clone() for name, one in model.state_dict().items()}
save_file(weights, "weights.safetensors")
save_file(tensors=weights, filename="named.safetensors", metadata={"format": "pt"})
save_model(model, "model.safetensors")
safetensors.numpy.save_file({"one": numpy.full(3, int(sys.argv[1]))}, "array.safetensors")
for name in ("weights.safetensors", "named.safetensors", "model.safetensors"):
    assert all(one.equal(weights[key]) for key, one in load_file(name).items())
other = torch.nn.Linear(3, 2)
load_model(other, "model.safetensors")
assert other.weight.equal(model.weight)
assert safetensors.numpy.load_file("array.safetensors")["one"][0] == int(sys.argv[1])
with safe_open("named.safetensors", framework="pt") as opened:
    assert opened.metadata() == {"format": "pt"}
    assert opened.get_tensor("weight").equal(weights["weight"])
