"""Do torch's compiled kernels run on this GPU?

A torch build carries kernels for some architectures (`sm_90` is compute capability 9.0). A GPU runs those of its own
major version with its own or a lower minor one (8.9 runs sm_86), and PTX (`compute_90`) of its own or any lower
capability, which the driver compiles at first use. Otherwise the first kernel fails: "no kernel image is available for
execution on the device". New GPUs need a newer torch, old ones a build that still has them.

Source: NVIDIA, CUDA C++ Programming Guide, Binary and PTX Compatibility.
"""

import re

from gputune.checks._answers import each_capability, error, ok, unread, without_cuda_torch
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, number


def check(facts: Facts, measurements: Measurements) -> Findings:
    if facts.gpus and (finding := without_cuda_torch(facts)):
        yield finding
    elif facts.gpus and not facts.libraries.architectures:
        yield unread(facts, "libraries.arch_list", "what torch's kernels were compiled for")
    else:
        yield from each_capability(facts, lambda gpu: _of(facts, gpu))


def _of(facts: Facts, gpu: Gpu) -> Finding:
    capability, compiled = number(gpu.compute_capability) or (0, 0), facts.libraries.architectures
    running = [name for name in compiled if runs(name, capability)]
    if running:
        return ok(f"{gpu.name} ({gpu.compute_capability}) runs torch's {running[-1]}")
    wanted = f"sm_{capability[0]}{capability[1]}"
    return error(
        f"{gpu.name} needs {wanted}, and torch {facts.libraries.torch} has only {', '.join(compiled)}",
        f"install a torch build whose torch.cuda.get_arch_list() names {wanted}: https://pytorch.org/get-started for a new "
        "GPU, https://pytorch.org/get-started/previous-versions for an old one",
    )


def runs(name: str, capability: tuple[int, int]) -> bool:
    """Whether a GPU of this compute capability runs code compiled for `name`."""
    found = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", name)
    if not found:
        return False
    kind, target, suffix = found[1], (int(found[2]), int(found[3])), found[4]
    if suffix == "a":  # architecture-specific: no other GPU runs it
        return target == capability
    if kind == "sm" or suffix == "f":  # family-specific PTX stays within the major version too
        return target[0] == capability[0] and target[1] <= capability[1]
    return target <= capability
