"""Do torch's compiled kernels run on this GPU?

A torch build contains kernels for some architectures (`sm_90` is compute capability 9.0). A GPU runs those of its own
major version with the same or a lower minor version (8.9 runs sm_86), and PTX (`compute_90`) of its own or any lower
capability, which the driver compiles at first use. The integrated GPUs of Jetson boards run no code of other cards,
only PTX. Otherwise the first kernel fails with "no kernel image is available
for execution on the device". A new GPU needs a newer torch, an old GPU a build that still supports it.

Source: NVIDIA, CUDA C++ Programming Guide, Binary and PTX Compatibility.
"""

import re

from gputune.checks._answers import Finding, Findings, Measurements, error, judge_gpus, ok, unread, without_cuda_torch
from gputune.checks._questions import number
from gputune.facts import Facts, Gpu


def check(facts: Facts, measurements: Measurements) -> Findings:
    if facts.gpus and (finding := without_cuda_torch(facts)):
        yield finding
    elif facts.gpus and not facts.libraries.architectures:
        yield unread(facts, "libraries.arch_list", "what torch's kernels were compiled for")
    else:
        yield from judge_gpus(facts, lambda gpu: _judge(facts, gpu), "compute_capability", used_by_torch=True)


def _judge(facts: Facts, gpu: Gpu) -> Finding:
    capability, compiled = number(gpu.compute_capability) or (0, 0), facts.libraries.architectures
    running = [name for name in compiled if runs(name, capability, alone=facts.board is not None)]
    if running:
        return ok(f"{gpu.name} ({gpu.compute_capability}) runs torch's {running[-1]}")
    wanted = f"sm_{capability[0]}{capability[1]}"
    return error(
        f"{gpu.name} needs {wanted}, but torch {facts.libraries.torch} has only {', '.join(compiled)}",
        f"install a torch build whose torch.cuda.get_arch_list() contains {wanted}: https://pytorch.org/get-started "
        "for a new GPU, https://pytorch.org/get-started/previous-versions for an old one",
    )


def runs(name: str, capability: tuple[int, int], *, alone: bool = False) -> bool:
    """Whether a GPU of this capability runs code compiled for `name`. If it is `alone`, as a Jetson board's, it runs no
    binary code of another capability.
    """
    match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", name)
    if not match:
        return False
    kind, target, suffix = match[1], (int(match[2]), int(match[3])), match[4]
    if suffix == "a" or (alone and kind == "sm"):  # architecture-specific: no other GPU runs it
        return target == capability
    if kind == "sm" or suffix == "f":  # family-specific PTX stays within the major version too
        return target[0] == capability[0] and target[1] <= capability[1]
    return target <= capability
