"""Steps on request, which is the one thing in these scripts that is not a user's: `for _ in steps(): ...`.

On stdout there is one line of JSON before the first step, with torch's flags, and one after each block of steps: the
seconds it took, the peak of the GPU's memory in MiB since the line before, and the losses that were logged. A line on
stdin asks for a block: its number of steps. The end of stdin ends the loop.
"""

import json
import os
import sys
import time

import torch

_losses = []


def steps(**more):
    """Count the steps of each block. What `more` says goes into the first line. With STEPS in the environment, nothing
    is said, and there are so many steps.
    """
    if "STEPS" in os.environ:
        yield from range(int(os.environ["STEPS"]))
        return
    say(flags=flags(), **more)
    yield from blocks(sys.stdin)


def blocks(lines):
    """The steps of the block that each line asks for."""
    for line in lines:
        synchronize()
        started = time.perf_counter()
        yield from range(int(line))
        synchronize()
        say(seconds=time.perf_counter() - started)


def log(loss):
    if "STEPS" in os.environ:
        return
    _losses.append(loss.detach())


def say(**words):
    losses = torch.stack(_losses).tolist() if _losses else []
    _losses.clear()
    print(json.dumps({**words, "losses": losses, "peak_mib": peak_mib()}), flush=True)


def peak_mib():
    """Since it was last asked for; None without a GPU."""
    if not torch.cuda.is_available():
        return None
    peak = torch.cuda.max_memory_allocated() / 2**20
    torch.cuda.reset_peak_memory_stats()
    return peak


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def flags():
    """torch's flags of this process that a profile may set."""
    attention = {
        name: getattr(torch.backends.cuda, f"{name}_sdp_enabled")()
        for name in ("flash", "mem_efficient", "math", "cudnn")
    }
    return {
        "matmul_precision": torch.get_float32_matmul_precision(),
        "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "attention": attention,
        "attention_order": list(torch._C._get_sdp_priority_order()),
        "threads": torch.get_num_threads(),
    }
