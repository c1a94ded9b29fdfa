"""The clock of a block of steps, on a GPU that the host is ahead of, or that is ahead of the host."""

import time
from statistics import median

import pytest
import torch

from gputune.live.tuning.timing import Clock

PAUSE = 0.02
"""The seconds of the host between two steps."""
CYCLES = 10_000_000
SHORT, LONG = 2, 20


def steps(count, cycles):
    for _ in range(count):
        time.sleep(PAUSE)
        torch.cuda._sleep(cycles)


def step_seconds(count, cycles):
    steps(1, cycles)
    clock = Clock("cuda")
    steps(count, cycles)
    return clock.stop().seconds / count


@pytest.mark.gpu
@pytest.mark.parametrize("works", [0.6, 2.5], ids=["the host is the limit", "the GPU is the limit"])
def test_a_step_takes_as_long_in_short_blocks_as_in_long_ones(works):
    """`works` is how long the GPU has to do for a step, to the host's pause."""
    step_seconds(LONG, CYCLES)
    clock = Clock("cuda")
    torch.cuda._sleep(50 * CYCLES)
    cycles = round(works * PAUSE / (clock.stop().seconds / (50 * CYCLES)))
    pairs = [(step_seconds(SHORT, cycles), step_seconds(LONG, cycles)) for _ in range(7)]
    short, long = (1000 * median(times) for times in zip(*pairs, strict=True))
    print(f"{short:.2f} ms a step in blocks of {SHORT}, {long:.2f} in blocks of {LONG}")
    assert short == pytest.approx(long, rel=0.1)
