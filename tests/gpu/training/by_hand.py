"""The plain script after the flags that the H200's profile sets, written by hand: `python by_hand.py NETWORK`."""

import torch

torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True

import plain  # noqa: E402, F401 (it trains)
