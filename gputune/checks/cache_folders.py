"""Can torch and its neighbours write where they keep things?

torch.hub and Hugging Face download to folders below HOME, compilers and the DataLoader write below TMPDIR. In a container
with a read-only root, or a user without a home, they fail, some of them late. Point the variables to a place that can be
written to, or mount one: `docker run --tmpfs /tmp`, Kubernetes `emptyDir`.

Source: PyTorch, torch.hub, TORCH_HOME; XDG Base Directory Specification.
"""

from gputune.checks._answers import ok, unread, warning
from gputune.checks._common import Facts, Findings, Measurements


def check(facts: Facts, measurements: Measurements) -> Findings:
    folders = facts.process.folders
    closed = [folder for folder in folders if not folder.writable]
    if not folders:
        yield unread(facts, "process.folders", "the folders that torch writes to")
    elif closed:
        named = ", ".join(f"{folder.variable} ({folder.path or 'not set'})" for folder in closed)
        follow = f"{folders[0].path}/.cache"  # HOME's
        names = [folder.variable for folder in closed if not folder.path.startswith(follow)] or [closed[0].variable]
        remedy = f"docker run --tmpfs /tmp (Kubernetes: an emptyDir at /tmp), and export {' '.join(f'{name}=/tmp' for name in names)}"
        yield warning(f"cannot be written to: {named}", remedy, names[0])
    else:
        yield ok(f"{', '.join(folder.variable for folder in folders)} can be written to")
