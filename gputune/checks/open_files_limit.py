"""May this process open as many files as its DataLoader workers pass to it?

Each tensor in a batch that waits to be used is an open file: workers x prefetch_factor (2) x tensors per batch, assumed
to be 8 here. Beyond the limit the loader fails with "Too many open files" or "received 0 items of ancdata".

Source: PyTorch, Multiprocessing package, Sharing strategies; getrlimit(2), RLIMIT_NOFILE.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning
from gputune.checks._questions import reason

TENSORS, PREFETCH, OTHERS = 8, 2, 100


def check(facts: Facts, measurements: Measurements) -> Findings:
    limit = facts.process.open_files
    need = OTHERS + facts.cpu.budget * PREFETCH * TENSORS
    if reason(facts, "process.open_files"):
        yield unread(facts, "process.open_files", "the limit of open files")
    elif limit is not None and limit < need:
        message = f"{limit} files may be open; a DataLoader worker on each of {facts.cpu.budget} CPUs may need {need}"
        yield warning(message, "ulimit -n $(ulimit -Hn); docker run --ulimit nofile=65536:65536")
    else:
        yield ok(f"{'any number of' if limit is None else limit} files may be open")
