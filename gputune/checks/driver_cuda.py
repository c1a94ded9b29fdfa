"""Is the NVIDIA driver new enough for the CUDA that torch was built with?

A driver runs programs of its own CUDA version and older ones. One with a lower major version refuses torch's CUDA
("driver version is insufficient"). With the same major version and a lower minor one torch runs, but code that must be
compiled from PTX by the driver may fail. Update the driver, install NVIDIA's cuda-compat package (data-centre GPUs
only), or install a torch built for an older CUDA.

Source: NVIDIA, CUDA Compatibility.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import gpu_beside, no_gpu, number, unread, without_cuda_torch
from gputune.facts import Facts
from gputune.measurement import Measurement

CHECK = "driver_cuda"


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    yield _finding(facts)


def _finding(facts: Facts) -> Finding:
    if not gpu_beside(facts):
        return no_gpu(facts, CHECK)
    torch, driver = number(facts.libraries.cuda), number(facts.driver.cuda)
    if torch is None:
        return without_cuda_torch(facts, CHECK) or unread(facts, CHECK, "libraries.cuda", "torch's CUDA version")
    if driver is None:
        return unread(facts, CHECK, "driver.cuda", "the CUDA version that the driver supports")
    told = f"driver {facts.driver.version or '?'} supports CUDA {facts.driver.cuda}, torch was built with {facts.libraries.cuda}"
    if driver >= torch:
        return Finding(check=CHECK, severity="OK", message=told)
    if driver[0] == torch[0] or facts.libraries.device_count:
        how = (
            "minor-version compatible"
            if driver[0] == torch[0]
            else "torch reaches the GPU through a compatibility package"
        )
        told += f": {how}; code that the driver must compile from PTX may fail"
        return Finding(check=CHECK, severity="OK", message=told)
    return Finding(
        check=CHECK,
        severity="ERROR",
        message=told,
        remedy=f"update the driver to one for CUDA {torch[0]}, or apt install cuda-compat-{torch[0]}-{torch[1]} (data-centre "
        f"GPUs), or install the torch build for CUDA {driver[0]}.x that https://pytorch.org/get-started names",
    )
