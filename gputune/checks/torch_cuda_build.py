"""Is torch built with CUDA where there is a GPU?

A CPU build of torch runs without an error and leaves the GPU idle: `torch.cuda.is_available()` is just False. It gets in
when the package index of the CPU builds is configured, or when another package asks for torch first. Uninstall it and
install the CUDA build that the selector on pytorch.org names for this driver.

Source: PyTorch, Start Locally.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import gpu_beside, unread
from gputune.facts import Facts
from gputune.measurement import Measurement

CHECK = "torch_cuda_build"


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    torch, cuda = facts.libraries.torch, facts.libraries.cuda
    if torch is None:
        yield unread(facts, CHECK, "libraries.torch", "torch's build")
    elif cuda is not None:
        yield Finding(check=CHECK, severity="OK", message=f"torch {torch} is built with CUDA {cuda}")
    elif not gpu_beside(facts):
        yield Finding(
            check=CHECK, severity="NOT_APPLICABLE", message="there is no NVIDIA GPU that a CUDA build would use"
        )
    else:
        yield Finding(
            check=CHECK,
            severity="ERROR",
            message=f"torch {torch} is built without CUDA, and there is a GPU",
            remedy="pip uninstall torch, then run the command for CUDA that https://pytorch.org/get-started/locally gives",
        )
