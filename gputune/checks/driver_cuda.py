"""Is the NVIDIA driver new enough for the CUDA that torch was built with?

A driver runs programs of its own CUDA version and of older ones. If only its minor version is lower than torch's, torch
runs, but code that the driver must compile from PTX may fail. If its major version is lower, it rejects torch's CUDA
("driver version is insufficient"), unless NVIDIA's cuda-compat package is installed, which supports data-centre GPUs
and some workstation GPUs. Otherwise update the driver, or install a torch built for an older CUDA.

Source: NVIDIA, CUDA Compatibility.
"""

from gputune.checks._answers import Facts, Finding, error, no_gpu, ok, one_finding, unread, without_cuda_torch
from gputune.checks._questions import consumer, has_gpu, number
from gputune.checks._remedies import pip, torch_build, torch_index, typed


@one_finding
def check(facts: Facts) -> Finding:
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
    return error(message, _remedy(facts, torch))


def _remedy(facts: Facts, torch: tuple[int, int]) -> str:
    """A torch for this driver, which needs no root; or a newer driver, or the package that lifts this one."""
    build = torch_build(facts, keep=False)
    update = f"update the driver to one for CUDA {torch[0]} (https://www.nvidia.com/drivers)"
    if not any(consumer(gpu) for gpu in facts.gpus):
        version = f"{torch[0]}.{torch[1]}"
        install = f"sudo apt-get install cuda-compat-{version.replace('.', '-')}"
        path = f"export LD_LIBRARY_PATH=/usr/local/cuda-{version}/compat:$LD_LIBRARY_PATH"
        needs = "from NVIDIA's repository, if NVIDIA's table of CUDA Compatibility has this driver's branch"
        update += f"; or {install} && {path}, {needs}"
    if build is None:
        return update
    return typed(f"{pip(facts)} install --force-reinstall torch{torch_index(build)}", note=f"or {update}")
