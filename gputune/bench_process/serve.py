"""The child side of the bench process: imports torch once, then runs benches on request, over pipes of its own.

`python -m gputune.bench_process.serve MODULES PARENT REQUESTS ANSWERS`: modules to import beside torch, with commas
between them, the parent's pid, and two file descriptors. The pid only tells it from others in a list of processes. It
runs below a keeper, which ends it, with everything it started, when the parent ends, even in the middle of a bench that
holds the interpreter.
"""

import ctypes
import getpass
import importlib
import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import get_args

from gputune.bench_process import Context, Work
from gputune.bench_process.messages import Activity, Answer, BenchRequest, Done, Raised, Ready, Start, decode
from gputune.host.keeper import VARIABLE
from gputune.resources.messages import encode
from gputune.resources.unreadable import Cause

_PR_SET_PDEATHSIG = 1
_CACHE = "TORCHINDUCTOR_CACHE_DIR"


def main(requests_fd: int, answers_fd: int, imports: Sequence[str] = ()) -> None:
    # as where something kills both the keeper and gputune
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError):  # when memory runs out, this and what it starts go first, so that the parent can report it
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    for descriptor in (requests_fd, answers_fd):
        os.set_inheritable(descriptor, False)
    os.dup2(2, 1)  # whatever prints must not reach the reader of the answers, nor a terminal
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(requests_fd, requests), daemon=True).start()
    folder = os.environ.pop(VARIABLE, "")  # the keeper's; empty where it could make none
    if folder:
        # The key under which `multiprocessing.util.get_temp_dir` looks; forked and spawned processes inherit it.
        multiprocessing.current_process()._config["tempdir"] = folder  # type: ignore[attr-defined]
    with os.fdopen(answers_fd, "wb") as answers:

        def send(answer: Answer) -> None:
            answers.write(encode(answer))
            answers.flush()

        _serve(requests, send, imports, folder)


def _listen(descriptor: int, requests: queue.Queue[str]) -> None:
    """Pass requests on, so that the next one waits while a bench runs."""
    with os.fdopen(descriptor, encoding="utf-8") as pipe:
        for line in pipe:
            requests.put(line)
    os._exit(1)  # nobody is left who could want anything


def _serve(requests: queue.Queue[str], send: Callable[[Answer], None], imports: Sequence[str], folder: str) -> None:
    try:
        torch = importlib.import_module("torch")  # while the parent is still reading the machine
        for module in imports:
            with suppress(Exception):  # the bench that needs it will say so
                importlib.import_module(module)
        start = decode(requests.get())
        if start.device.startswith("cuda"):  # its context is created now, so that no bench pays for it
            torch.cuda.set_device(start.device)
            torch.zeros(1, device=start.device)
    except Exception as error:
        send(_raised(error))
        return
    send(Ready())
    while True:
        request = decode(requests.get())
        users_code = request.dataset or request.batches
        with _temporary_files_in("" if users_code else folder):
            _run(request, start, send)


def _run(request: BenchRequest, start: Start, send: Callable[[Answer], None]) -> None:
    work = {field.name: getattr(request, field.name) for field in fields(Work)}
    context = Context(device=start.device, facts=start.facts, say=lambda text: send(Activity(text=text)), **work)
    try:
        for answer in importlib.import_module(request.bench).measure(context):
            send(answer)
    except Exception as error:
        send(_raised(error))
    else:
        send(Done())


def _raised(error: Exception) -> Raised:
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    cause = getattr(error, "cause", None)  # any exception may have such an attribute, of any type
    return Raised(text=text, cause=cause if cause in get_args(Cause) else None)


@contextmanager
def _temporary_files_in(folder: str) -> Iterator[None]:
    """Let all libraries create their temporary files there. What torch.compile keeps stays where it is.
    It is not meant for the user's own code, which may have its data in the folder that TMPDIR names.
    """
    if not folder:
        yield
        return
    before = {name: os.environ.get(name) for name in ("TMPDIR", _CACHE)}
    with suppress(OSError, KeyError):
        os.environ.setdefault(_CACHE, f"{tempfile.gettempdir()}/torchinductor_{getpass.getuser()}")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = None
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


if __name__ == "__main__":
    main(int(sys.argv[3]), int(sys.argv[4]), [name for name in sys.argv[1].split(",") if name])
