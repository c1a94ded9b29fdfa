"""OpenMP threads of one process on the CPU (OMP_NUM_THREADS); none leaves it to torch, which counts its CPUs.

Inside a CPU quota torch starts as many threads as the affinity allows; they then share less time than they expect,
wait for each other at every barrier and are throttled together. Ranks that share CPUs, and a scheduler's grant that
no affinity enforces, are not seen by torch either. MKL follows OMP_NUM_THREADS unless MKL_NUM_THREADS is set, and
then that one counts for torch too. torchrun exports OMP_NUM_THREADS=1 to several ranks if nothing is set.

**The rule**: fewer threads than torch's own count look better beside other work, and hurt once the machine is idle, so
two probes apart must agree on them, and what a tune finds beside others is probably so. Where torch would start more
threads than the process has CPUs, it is given as many as there are, also unmeasured. A quota also holds during the
measurement: where that many threads certainly ran slower in it, torch's count stays. CPUs that other ranks or jobs will
use are idle while one process measures, so there no measurement speaks for more.

`gputune apply` and `gputune.apply` ask this again where the program starts: a profile of another machine, or from
outside of the quota, knows nothing of its CPUs. Ranks below a launcher get their share right after `import torch`.

Source: PyTorch, "CPU threading and TorchScript inference"; oneMKL, MKL_NUM_THREADS; the kernel's CFS bandwidth control.
"""

import os

from . import Need, Numerics, Phase, Stage

VALUE = int | None
DEFAULT = None
PHASE: Phase = "launch"
NUMERICS: Numerics = "rounding"  # a sum that is shared out among threads is added in another order
DEPENDS = ("cpu", "cpu_budget")
STAGE: Stage = "options"
AFTER = ("fused_optimizer",)
NEEDS: tuple[Need, ...] = ("cpu",)
SPARES_HOST = True
LIMITS = (1, 4096)
NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Where one of these is set, the count that torch started with is the user's."""


def environ(value: int | None) -> dict[str, str]:
    """Without MKL_NUM_THREADS, which MKL prefers: it would hide an OMP_NUM_THREADS that a script sets later."""
    return {} if value is None else {"OMP_NUM_THREADS": str(value)}


def apply(value: int) -> None:
    """Set the count in a running process, where the variable comes too late."""
    import torch

    torch.set_num_threads(value)


def current() -> int:
    import torch

    return int(torch.get_num_threads())


def cpus_of_rank() -> int | None:
    """The CPUs of this process, where the variable was exported for none or for all of the ranks that share them: below
    a launcher. None elsewhere.
    """
    if "LOCAL_WORLD_SIZE" not in os.environ and "OMP_NUM_THREADS" in os.environ:
        return None
    from ..resources import room, scheduler
    from ..resources.files import Files

    files = Files()
    return room.rank_budget(files, scheduler.read(files))


def default() -> int | None:
    """The count that torch starts with: one for each CPU or core of the affinity. None for any other count."""
    cpus = len(os.sched_getaffinity(0))
    return current() if current() in {cpus, max(2, cpus // 2)} else None
