"""Is the NVIDIA driver new enough for the CUDA that torch was built with?

A driver runs programs of its own CUDA version and of older ones. If only its minor version is lower than torch's, torch
runs, but code that the driver must compile from PTX may fail. If its major version is lower, it rejects torch's CUDA
("driver version is insufficient"), unless NVIDIA's cuda-compat package is installed, which supports data-centre GPUs
and some workstation GPUs. Otherwise update the driver, or install a torch built for an older CUDA.

Source: NVIDIA, CUDA Compatibility.
"""

from gputune.checks._answers import Finding, Findings, Measurements, error, no_gpu, ok, unread, without_cuda_torch
from gputune.checks._questions import consumer, has_gpu, number
from gputune.facts import Facts


def check(facts: Facts, measurements: Measurements) -> Findings:
    yield _finding(facts)


def _finding(facts: Facts) -> Finding:
    if not has_gpu(facts):
        return no_gpu(facts)
    torch, driver = number(facts.libraries.cuda), number(facts.driver.cuda)
    if torch is None:
        return without_cuda_torch(facts) or unread(facts, "libraries.cuda", "torch's CUDA version")
    if driver is None:
        fact = "driver.cuda" if facts.driver.nvml else "driver.nvml"
        return unread(facts, fact, "the CUDA version that the driver supports")
    supported = f"driver {facts.driver.version or '?'} supports CUDA {facts.driver.cuda}"
    message = f"{supported}, torch was built with {facts.libraries.cuda}"
    if driver >= torch:
        return ok(message)
    if driver[0] == torch[0] or facts.libraries.device_count:
        compatible = driver[0] == torch[0]
        how = "minor-version compatible" if compatible else "torch reaches the GPU through a compatibility package"
        return ok(f"{message}: {how}; code that the driver must compile from PTX may fail")
    return error(message, _remedy(facts, driver, torch))


def _remedy(facts: Facts, driver: tuple[int, int], torch: tuple[int, int]) -> str:
    version = f"{torch[0]}.{torch[1]}"
    package = (
        f"apt install cuda-compat-{torch[0]}-{torch[1]} && export LD_LIBRARY_PATH=/usr/local/cuda-{version}/compat:"
        "$LD_LIBRARY_PATH; or "
    )
    compat = "" if any(consumer(gpu) for gpu in facts.gpus) else package
    return (
        f"{compat}update the driver to one for CUDA {torch[0]}, or install the torch build for CUDA {driver[0]}.x "
        "that https://pytorch.org/get-started names"
    )
