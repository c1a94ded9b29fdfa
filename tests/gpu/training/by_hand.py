"""A plain script after the flags that the H200's profile sets, written by hand: `python by_hand.py NETWORK`."""

import importlib
import sys

import torch

torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True

importlib.import_module(sys.argv[1]).main()
