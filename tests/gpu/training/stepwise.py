"""Any script as it is, in blocks of its optimizer's steps: `python stepwise.py SCRIPT [ARGUMENT...]`.

It speaks as `blocks.py` does, but for torch's flags and the losses; its first step comes before all blocks. In a job
rank 0 speaks for all.
"""

import os
import runpy
import sys
from pathlib import Path

import torch.distributed as dist
from blocks import blocks, say
from torch.optim.optimizer import register_optimizer_step_post_hook


class Stepwise:
    """Holds the script after a step until the next block is asked for, and ends it after the last."""

    def __init__(self):
        self.left = None

    def __call__(self, *_):
        if self.left is None:
            say()
            self.left = blocks(told_by_rank_0() if dist.is_initialized() else sys.stdin)
        if next(self.left, None) is None:
            raise SystemExit


def told_by_rank_0():
    """The lines of rank 0's stdin, in every rank. Whoever waits for one leaves its GPU idle, as NCCL would not."""
    group = dist.new_group(backend="gloo")
    while True:
        line = [sys.stdin.readline() if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(line, src=0, group=group)
        if not line[0]:
            return
        yield line[0]


if os.environ.get("RANK", "0") != "0":
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
register_optimizer_step_post_hook(Stepwise())
sys.argv = sys.argv[1:]
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
