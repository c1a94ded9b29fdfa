"""How fast data moves between the host and a GPU, and inside it, and what starting a kernel costs.

Copies of 256 MiB to and from the GPU, from pinned and from pageable memory; one of 1 GiB inside the GPU, which counts
bytes read and bytes written; and the time that launching one tiny kernel takes from Python. The bandwidth inside the
GPU is its memory's: L2 cannot hold the data.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from gputune.bench_process import Context
from gputune.benches._errors import first_sentence, synchronize
from gputune.benches._timing import Arm, Metric, interleave, or_gap
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import LOOKS, Measurement

SECONDS = {"cuda": {"thorough": 6}}
RANK = 9

HOST_BYTES = 256 << 20
DEVICE_BYTES = 1 << 30

LAUNCHES = 256
"""Kernels in one sample of the latency: CUDA queues about a thousand, and then makes the host wait."""


def needs(facts: Facts, device: str) -> str | None:
    return None if device.startswith("cuda") else "copies between host and device need a GPU"


def measure(context: Context) -> Iterator[Measurement | Gap]:
    context.say("launch cost")
    yield latency(context)
    context.say("copies")
    to_host, inside = sizes(context.free_bytes())
    arms: list[Arm] = []
    for copy in (*host_copies(context, to_host), device_copy(context, inside)):
        if isinstance(copy, Gap):
            yield copy
        else:
            arms.append(copy)
    rows = interleave(context, arms, context.seconds * 0.9, Metric("transfer", "GB/s"))
    yield from or_gap(rows, "bench.transfer", "the copies")


def sizes(free_bytes: int) -> tuple[int, int]:
    """Bytes of a copy to or from the host, and inside the device: the second needs source and target there."""
    return min(HOST_BYTES, free_bytes // 8), min(DEVICE_BYTES, free_bytes // 4)


def host_copies(context: Context, size: int) -> Iterator[Arm | Gap]:
    """Both directions, pinned and pageable.

    CUDA's events also time the blocking copies of pageable memory: nothing is queued when the first event is
    recorded, so it completes at once, and the last one is recorded only after the host has received the data or sent
    all of it.
    """
    import torch

    on_device = _noise(context, size)
    for pinned in (True, False):
        try:
            on_host = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        except RuntimeError as error:
            synchronize(context)
            yield Gap(fact="bench.transfer", reason=f"no {size >> 20} MiB of pinned memory: {first_sentence(error)}")
            continue
        on_host.copy_(on_device)  # pages that were never written to would all be the one page of zeros
        for copy, target, source in (("host to device", on_device, on_host), ("device to host", on_host, on_device)):
            yield Arm(
                params={"copy": copy, "pinned": pinned},
                run=partial(target.copy_, source, non_blocking=pinned),
                work=size / 1e9,
            )


def device_copy(context: Context, size: int) -> Arm:
    import torch

    source = _noise(context, size)
    return Arm(
        params={"copy": "device"}, run=partial(torch.empty_like(source).copy_, source), work=2 * source.numel() / 1e9
    )


def _noise(context: Context, size: int) -> Any:
    import torch

    return torch.randint(256, (size,), dtype=torch.uint8, device=context.device)


def latency(context: Context) -> Measurement:
    """Microseconds of host time for each kernel of a short burst; the first burst is not kept."""
    import torch

    x = torch.zeros(1, device=context.device)
    samples = []
    for _ in range(LOOKS[0] + 1):
        synchronize(context)
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            x.add_(1)
        samples.append((time.perf_counter() - start) / LAUNCHES * 1e6)
    return Metric("transfer", "us", "latency").row(context, samples[1:], {})
