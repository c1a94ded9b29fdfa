"""The child side of a worker: imports torch once, then runs benches as it is asked, over pipes of its own.

`python -m gputune.bench_process.serve REQUESTS ANSWERS PARENT`: JSON lines in, JSON lines out. It ends, with all that it
started, when the requests end or the parent does, even in the middle of a bench that holds the interpreter.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import sys
import threading
from dataclasses import asdict
from typing import Any

from gputune.bench_process.lifeline import die_with, go_first, guard


def main(requests_fd: int, answers_fd: int, parent: int) -> None:
    die_with(parent)
    guard(requests_fd)
    go_first()
    for descriptor in (requests_fd, answers_fd):
        os.set_inheritable(descriptor, False)
    os.dup2(2, 1)  # whatever prints must not reach the answers' reader, nor a terminal
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(requests_fd, requests), daemon=True).start()
    with os.fdopen(answers_fd, "w", buffering=1) as answers:
        _serve(requests, answers)


def _listen(descriptor: int, requests: queue.Queue[dict[str, Any]]) -> None:
    """Pass requests on, so that the next one waits while a bench runs."""
    with os.fdopen(descriptor) as pipe:
        for line in pipe:
            requests.put(json.loads(line))


def _serve(requests: queue.Queue[dict[str, Any]], answers: Any) -> None:
    def send(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        importlib.import_module("torch")  # while the machine is still being read
        hello = requests.get()
        facts = _start(hello["device"], hello["facts"])
    except Exception as error:
        send(failed=_words(error))
        return
    send(ready=True)
    while True:
        _bench(requests.get(), hello["device"], facts, send)


def _start(device: str, facts: Any) -> Any:
    """Create the context of the device, so that no bench pays for it."""
    import torch

    from gputune.facts import Facts
    from gputune.strict_types import convert

    if device.startswith("cuda"):
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
    return convert(Facts, facts)


def _bench(request: dict[str, Any], device: str, facts: Any, send: Any) -> None:
    from gputune import bench_process
    from gputune.facts.gap import Gap

    shapes = tuple(bench_process.MatmulShape(**shape) for shape in request.get("shapes", ()))
    context = bench_process.Context(
        device=device,
        facts=facts,
        seconds=request["seconds"],
        budget=request["budget"],
        shapes=shapes,
        dataset=tuple(bench_process.UserDataset(**one) for one in request.get("dataset", ())),
        batches=bench_process.Batches(**request["batches"]) if "batches" in request else None,
        say=lambda text: send(say=text),
    )
    try:
        for found in importlib.import_module(request["bench"]).measure(context):
            send(**{"gap" if isinstance(found, Gap) else "measurement": asdict(found)})
    except Exception as error:
        send(failed=_words(error))
    else:
        send(done=True)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
