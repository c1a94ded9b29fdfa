"""May this process open as many files as its DataLoader workers pass to it?

Each tensor in a batch that waits to be used is an open file: workers x prefetch_factor (2) x tensors per batch, assumed
to be 8 here. Beyond the limit the loader fails with "Too many open files" or "received 0 items of ancdata".

Source: PyTorch, Multiprocessing package, Sharing strategies; getrlimit(2), RLIMIT_NOFILE.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning
from gputune.checks._questions import reason
from gputune.checks._remedies import bare, started, typed

TENSORS, PREFETCH, OTHERS = 8, 2, 100


def check(facts: Facts, measurements: Measurements) -> Findings:
    limit = facts.process.open_files
    need = OTHERS + facts.cpu.budget * PREFETCH * TENSORS
    if reason(facts, "process.open_files"):
        yield unread(facts, "process.open_files", "the limit of open files")
    elif limit is not None and limit < need:
        message = f"{limit} files may be open; a DataLoader worker on each of {facts.cpu.budget} CPUs may need {need}"
        yield warning(message, _remedy(facts))
    else:
        yield ok(f"{'any number of' if limit is None else limit} files may be open")


def _remedy(facts: Facts) -> str:
    """Raise the soft limit to the hard one; where that is no higher, whoever started the process has to."""
    more = "sudo systemctl edit, LimitNOFILE=65536, for what started this"
    if facts.container.kind in ("docker", "podman"):
        more = bare(started(facts, "--ulimit nofile=65536:65536", ""))
    elif facts.container.kind == "kubernetes":
        more = "LimitNOFILE of the node's container runtime"
    return typed('ulimit -n "$(ulimit -Hn)"', note=f"if that is too low: {more}")
