"""Steps on request, which is the one thing in these scripts that is not a user's: `for _ in steps(): ...`.

On stdout there is one line of JSON before the first step, with torch's flags, and one after each block of steps: the
seconds that so many steps take, the peak of the GPU's memory in MiB since the line before, and the losses that were
logged. A line on stdin asks for a block: its number of steps. The end of stdin ends the loop.
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
    """The steps of the block that each line asks for. The first one is not timed, if there are others: in it the host
    comes to be as far ahead of the GPU as it is in a longer run.
    """
    for line in lines:
        steps = int(line)
        begun = moment()
        for number in range(steps):
            yield number
            if number == 0 and steps > 1:
                begun = moment()
        say(seconds=seconds_since(begun) * steps / max(1, steps - 1))


def moment():
    """Now, or where there is a GPU, when it has done what it was given to do so far."""
    if not torch.cuda.is_available():
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def seconds_since(begun):
    ended = moment()
    if not torch.cuda.is_available():
        return ended - begun
    torch.cuda.synchronize()
    return begun.elapsed_time(ended) / 1000


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
