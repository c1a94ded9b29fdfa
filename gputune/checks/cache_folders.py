"""Can torch and related libraries write to the folders in which they keep files?

torch.hub and Hugging Face download to folders below HOME; compilers and the DataLoader write below TMPDIR. In a
container with a read-only root, or for a user without a home folder, they fail, sometimes late: without a folder for
temporary files a DataLoader waits for its workers forever, and torch 2.13 cannot create an optimizer. Point the
variables to a writable folder, or mount one: `docker run --tmpfs /tmp`, Kubernetes `emptyDir`.

Source: PyTorch, torch.hub, TORCH_HOME; XDG Base Directory Specification.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, below, gib, ok, unread, warning
from gputune.facts import Folder

MOMENTARY = True
LEAST_BYTES = 64 << 20


def check(facts: Facts, measurements: Measurements) -> Findings:
    folders = facts.process.folders
    closed = [folder for folder in folders if not folder.writable]
    full = [folder for folder in folders if folder.writable and below(folder.free_bytes, LEAST_BYTES)]
    if not folders:
        yield unread(facts, "process.folders", "the folders that torch writes to")
    if closed:
        yield _elsewhere(facts, "cannot be written to", closed)
    if full:
        yield _elsewhere(facts, f"less than {gib(LEAST_BYTES)} is left in", full)
    if folders and not closed and not full:
        yield ok(f"{', '.join(folder.variable for folder in folders)} can be written to")


def _elsewhere(facts: Facts, what: str, folders: list[Folder]) -> Finding:
    named = ", ".join(f"{folder.variable} ({folder.path or 'not set'})" for folder in folders)
    follow = f"{facts.process.folders[0].path.rstrip('/')}/.cache"  # HOME's, which may be /
    names = [folder.variable for folder in folders if not folder.path.startswith(follow)] or [folders[0].variable]
    mount = "docker run --tmpfs /tmp (Kubernetes: an emptyDir at /tmp), and " if facts.container.kind else ""
    remedy = f"{mount}export {' '.join(f'{name}=/tmp' for name in names)}, or another folder with room"
    return warning(f"{what}: {named}", remedy, names[0])
