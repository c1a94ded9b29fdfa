"""Training in blocks on request, which is the one thing in these scripts that is not a user's.

On stdout the script says what it is about to train, as one line of JSON. For each line on stdin, a number of steps, it
then makes that many and answers with the seconds that they took. The end of stdin ends it.
"""

import json
import sys
import time

import torch


def answer(step, model, inputs, **more):
    said = {
        "flags": flags(),
        "parameters": sum(one.numel() for one in model.parameters()),
        "inputs": list(inputs.shape),
    }
    print(json.dumps({**said, **more}), flush=True)
    for line in sys.stdin:
        print(json.dumps(seconds(step, int(line))), flush=True)


def seconds(step, count):
    synchronize()
    started = time.perf_counter()
    for _ in range(count):
        step()
    synchronize()
    return time.perf_counter() - started


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
