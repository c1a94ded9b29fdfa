"""How often the rule is certain and wrong on this machine, idle and beside busy loops: `python tests/real_noise.py`.

Blocks of one computation are timed for some seconds (the first argument; 100 by default), and comparisons of it with
itself, as in `noise.py`, are drawn from what was recorded. With one thread, and with as many as there are CPUs.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import noise
import torch

BLOCK_SECONDS = 0.01
LOOPS = (0, 1, 2, 4)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(count)]
    try:
        time.sleep(1)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def speeds(threads: int, seconds: float) -> list[float]:
    """The speed of one block after another, in products a second."""
    torch.set_num_threads(threads)
    left, right = torch.randn(2, 384, 384)
    found, end = [], time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        products = 0
        while (now := time.perf_counter()) < start + BLOCK_SECONDS:
            left @ right
            products += 1
        found.append(products / (now - start))
    return found


def recorded(blocks: list[float]) -> noise.Machine:
    """A machine that does what was recorded, from some moment on."""

    def machine(rng: random.Random) -> Iterator[float]:
        at = rng.randrange(len(blocks))
        while True:
            yield blocks[at % len(blocks)]
            at += 1

    return machine


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 100.0
    machines = {}
    for loops in LOOPS:
        with busy_loops(loops):
            for threads in sorted({1, len(os.sched_getaffinity(0))}):
                blocks = speeds(threads, seconds)
                machines[f"{loops} loops, {threads} threads"] = recorded(blocks)
    noise.table(machines)


if __name__ == "__main__":
    main()
