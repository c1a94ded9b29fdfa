"""The clock of a block of steps that a host launches ahead of the GPU."""

import time

import pytest
import torch

from gputune.inject.tuning.blocks import Clock

PAUSE, WORKS = 0.02, 0.012
"""The seconds of the host between two steps, and of the GPU for one."""


def steps(count, matrix, matmuls):
    for _ in range(count):
        time.sleep(PAUSE)
        for _ in range(matmuls):
            matrix @ matrix


def step_seconds(count, matrix, matmuls):
    steps(1, matrix, matmuls)
    clock = Clock("cuda")
    steps(count, matrix, matmuls)
    found = clock.stop()
    assert found["host_seconds"] > 0
    return found["seconds"] / count


@pytest.mark.gpu
@pytest.mark.parametrize("factor", [1, 4], ids=["the host is the limit", "the GPU is the limit"])
def test_a_step_takes_as_long_in_short_blocks_as_in_long_ones(factor):
    matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    step_seconds(20, matrix, 20)
    clock = Clock("cuda")
    for _ in range(100):
        matrix @ matrix
    matmuls = max(1, round(factor * WORKS / (clock.stop()["seconds"] / 100)))
    short = [step_seconds(2, matrix, matmuls) for _ in range(10)]
    long = [step_seconds(40, matrix, matmuls) for _ in range(3)]
    print(f"{1000 * min(short):.2f} ms a step in blocks of 2, {1000 * min(long):.2f} in blocks of 40")
    assert min(short) == pytest.approx(min(long), rel=0.05)
