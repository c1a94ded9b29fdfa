"""How many threads torch computes with while a bench measures on CPUs that others may use."""

from collections.abc import Iterator
from contextlib import contextmanager

from gputune.facts import busy
from gputune.facts.cpu import Cpu
from gputune.host import Host

LOOK_SECONDS = 0.25
"""How long is watched how many CPUs others use."""


@contextmanager
def own_threads(cpus: int) -> Iterator[None]:
    """Let torch compute with no more threads than this; torch itself counts the CPU affinity only."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(min(before, cpus))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def free_cpus(cpu: Cpu, host: Host) -> int:
    """How many CPUs of the budget others leave now, at least one; all of it where that cannot be read."""
    others = busy.watched(host, LOOK_SECONDS) or 0.0
    return max(1, min(cpu.budget, round(cpu.affinity_count - others)))
