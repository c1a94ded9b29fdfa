"""NVIDIA's Jetson boards, whose integrated GPU only a build of torch for that board can use."""

from gputune.checks import Finding
from gputune.checks._answers import error, not_applicable
from gputune.checks._questions import gap
from gputune.checks._remedies import python_of, typed
from gputune.facts import Facts

TARGETS = {
    "Thor": ("sm_101", "sm_110"),
    "Orin": ("sm_87",),
    "Xavier": ("sm_72",),
    "TX2": ("sm_62",),
    "TX1": ("sm_53",),
    "Nano": ("sm_53",),
}
"""By a word of the board's model, the targets of code for its GPU. Unlike other GPUs, these do not run the code of a
lower minor version. Source: CUDA C++ Programming Guide, Binary Compatibility; NVIDIA, CUDA GPU Compute Capability."""
WHEEL = typed(
    "cat /etc/nv_tegra_release",
    note="names the release; install the wheel that NVIDIA builds for its JetPack: "
    "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform",
)


def on_board(facts: Facts, board: str) -> Finding:
    """The finding if torch sees no GPU on a board that has one."""
    torch, compiled = facts.libraries.torch, facts.libraries.architectures
    if torch is None:
        return not_applicable(f"{board} has an integrated GPU; there is no torch that could use it")
    if facts.libraries.cuda is None:
        return error(f"torch {torch} is built without CUDA, so it cannot use the GPU of {board}", WHEEL)
    targets = _targets(board)
    if compiled and not set(targets) & set(compiled):
        needs = f"the GPU of {board} needs {' or '.join(targets)}"
        return error(f"{needs}, but torch {torch} has only {', '.join(compiled)}", WHEEL)
    failure = gap(facts, "libraries.devices")
    message = f"torch {torch} cannot use the GPU of {board}{f' ({failure.reason})' if failure else ''}"
    if facts.container.kind:
        remedy = typed("docker run --runtime nvidia IMAGE", where="on the board, beside its other options")
    else:
        remedy = typed(f"{python_of(facts)} -c 'import torch; torch.cuda.init()'", note="shows torch's reason")
    return error(message, remedy, fact=failure.fact if failure else None)


def _targets(board: str) -> tuple[str, ...]:
    named = next((targets for word, targets in TARGETS.items() if word in board), None)
    return named or tuple(sorted({target for targets in TARGETS.values() for target in targets}))
