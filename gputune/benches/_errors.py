"""What an error of torch's says: that memory did not suffice, that something is not to be had here, or that CUDA is broken."""

from __future__ import annotations

from gputune.bench_process import Context


def out_of_memory(error: Exception) -> bool:
    """Whether memory did not suffice: a GPU's, or, by what torch's allocator says, the host's."""
    import torch

    words = ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed")
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(said in str(error).lower() for said in words)


def raise_if_broken(context: Context) -> None:
    """Raise RuntimeError where the last error broke CUDA for this process, as an illegal memory access does: nothing more
    can be measured in it. After a mere refusal nothing is raised.
    """
    import torch

    if context.cuda:
        torch.cuda.synchronize(context.device)
