"""On a machine with a GPU, is torch built with CUDA?

A CPU build of torch runs without an error and leaves the GPU idle: `torch.cuda.is_available()` is simply False. It gets
installed if pip is configured to use the index of CPU builds, or if another package depends on torch. Uninstall it, and
install the CUDA build that the selector on pytorch.org names for this driver.

Source: PyTorch, Start Locally.
"""

from gputune.checks._answers import Facts, Findings, Measurements, error, not_applicable, ok, unread
from gputune.checks._questions import has_gpu
from gputune.checks._remedies import pip, torch_build, torch_index, typed


def check(facts: Facts, measurements: Measurements) -> Findings:
    torch, cuda = facts.libraries.torch, facts.libraries.cuda
    if torch is None:
        yield unread(facts, "libraries.torch", "torch's build")
    elif cuda is not None:
        yield ok(f"torch {torch} is built with CUDA {cuda}")
    elif facts.board:
        yield not_applicable(f"{facts.board} needs a build of its own: see gpu_absent")
    elif not has_gpu(facts):
        yield not_applicable("there is no NVIDIA GPU, for which a CUDA build would be needed")
    else:
        index = torch_index(torch_build(facts)) or " --index-url https://pypi.org/simple"
        note = "with torchvision and torchaudio, if you use them; other builds: https://pytorch.org/get-started/locally"
        # The CPU build of the same version would count as installed, so it is removed first.
        remedy = typed(f"{pip(facts)} uninstall -y torch", f"{pip(facts)} install torch{index}", note=note)
        yield error(f"torch {torch} is built without CUDA, so it cannot use the GPU", remedy)
