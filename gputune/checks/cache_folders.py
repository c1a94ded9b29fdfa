"""Can torch and related libraries write to the folders in which they keep files?

torch.hub and Hugging Face download to folders below HOME; compilers and the DataLoader write below TMPDIR. In a
container with a read-only root, or for a user without a home folder, they fail, sometimes late: without a folder for
temporary files a DataLoader waits for its workers forever, and torch 2.13 cannot create an optimizer. Point the caches
(never HOME) to a writable folder, or mount one: `docker run --tmpfs /tmp`, Kubernetes `emptyDir`.

Source: PyTorch, torch.hub, TORCH_HOME; XDG Base Directory Specification.
"""

import shlex

from gputune.checks._answers import Facts, Finding, Findings, Measurements, below, gib, ok, unread, warning
from gputune.checks._remedies import room, started, typed
from gputune.facts import Folder

MOMENTARY = True
LEAST_BYTES = 64 << 20
DIRECTORIES = {"TMPDIR": "tmp", "TORCH_HOME": "cache/torch", "HF_HOME": "cache/huggingface"}


def check(facts: Facts, measurements: Measurements) -> Findings:
    folders = _judged(facts)
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


def _judged(facts: Facts) -> list[Folder]:
    """The folders; HOME only while the caches are below it."""
    folders = facts.process.folders
    moved = any(folder.variable == "XDG_CACHE_HOME" and folder.path != _of_home(facts) for folder in folders)
    return [folder for folder in folders if not (moved and folder.variable == "HOME")]


def _of_home(facts: Facts) -> str:
    """Where the caches are below HOME, which may be / or not be set."""
    return f"{facts.process.folders[0].path.rstrip('/')}/.cache"


def _elsewhere(facts: Facts, what: str, folders: list[Folder]) -> Finding:
    named = ", ".join(f"{folder.variable} ({folder.path or 'not set'})" for folder in folders)
    names = _leading(facts, folders) or [folders[0].variable]
    return warning(f"{what}: {named}", other_folders(facts, folders), names[0])


def _leading(facts: Facts, folders: list[Folder]) -> list[str]:
    """The variables of those folders that are not below HOME's caches, which HOME takes with it."""
    return [folder.variable for folder in folders if not folder.path.startswith(_of_home(facts))]


def other_folders(facts: Facts, folders: list[Folder]) -> str:
    """Name other folders for caches and temporary files. HOME stays: programs find keys and settings there."""
    names = [name for name in _leading(facts, folders) if name != "HOME"]
    if any(folder.variable == "XDG_CACHE_HOME" for folder in folders):
        names = ["XDG_CACHE_HOME", *(name for name in names if name != "XDG_CACHE_HOME")]
    place = room(facts)
    if place is None:
        return _mount(facts)
    paths = {name: shlex.quote(f"{place}/{DIRECTORIES.get(name, 'cache')}") for name in names or ["XDG_CACHE_HOME"]}
    export = " ".join(f"{name}={path}" for name, path in paths.items())
    note = "or a folder that outlives the container" if facts.container.kind else ""
    return typed(f"mkdir -p {' '.join(dict.fromkeys(paths.values()))}", f"export {export}", note=note)


def _mount(facts: Facts) -> str:
    if facts.container.kind in (None, "apptainer"):
        return typed("df -h", note="shows which file systems are full or read-only: make room, or ask for it")
    if facts.container.kind == "kubernetes":
        mount = "containers: [{name: NAME, volumeMounts: [{name: tmp, mountPath: /tmp}]}]"
        volume = f"spec: {{volumes: [{{name: tmp, emptyDir: {{}}}}], {mount}}}"
        return typed(volume, where="in the pod's manifest", note="then move the caches there too")
    return started(facts, "--tmpfs /tmp", "", note="then move the caches there too")
