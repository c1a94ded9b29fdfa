"""Runs each request in a fork of one Python that has imported what they need: `python fork_server.py gputune` runs
`gputune` as a user types it, and `python fork_server.py torch`, in any interpreter, runs scripts that import torch.

A request is a line of JSON on stdin: gputune's `arguments`, or the path of a `script` with its `argv`; the environment,
the folder, which may be `gone` then, and the files of stdout and stderr. The answer is a line, too: the exit code of
the fork, which ends as a program does, and the CPU seconds and the MiB that it took.
"""

import atexit
import contextlib
import gc
import importlib
import importlib.util
import io
import json
import os
import pkgutil
import runpy
import signal
import sys
import threading
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 120
"""A fork that takes longer is killed by SIGALRM."""

PACKAGES = ("cli", "report", "deploy", "batch_size", "trials", "probing", "runtime", "profile", "checks", "knobs")
"""Of gputune, those whose modules are imported once, with all that these import at their tops."""
OTHERS = ("multiprocessing", "psutil", "pynvml", "rich.console", "rich.progress", "rich.table", "statistics", "yaml")


def import_gputune() -> Callable[..., None]:
    """Import it and make its command line, which is most of a short run. Returns what runs a command."""
    import typer

    for name in OTHERS:
        importlib.import_module(name)
    for package in PACKAGES:
        for module in pkgutil.iter_modules(importlib.import_module(f"gputune.{package}").__path__):
            importlib.import_module(f"gputune.{package}.{module.name}")
    from gputune import cli

    cli.add_verbs()
    made: Any = typer.main.get_command(cli.app)
    with contextlib.redirect_stdout(io.StringIO()):
        made.main(["explain", "shm_size"], standalone_mode=False)  # the first value and table import more

    def run(arguments: list[str]) -> None:
        if arguments:  # without any, a shell may ask what can be typed
            cli.app, cli.add_verbs = made, lambda only=None: None
        sys.argv = ["gputune", *arguments]
        runpy.run_module("gputune", run_name="__main__", alter_sys=True)

    return run


def import_torch() -> Callable[..., None]:
    """Import it. Returns what runs a script, as `python SCRIPT` does after what gputune's shim does for torch."""
    importlib.import_module("torch._dynamo")  # which torch itself imports with the first optimizer

    def run(script: str, private: str = "", argv: Sequence[str] = ()) -> None:
        if os.environ.get("GPUTUNE_APPLY") and os.environ.get("GPUTUNE_DISABLE") != "1":
            spec: Any = importlib.util.spec_from_file_location("_gputune_private", private)
            module: Any = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            module.hook().run(os.environ["GPUTUNE_APPLY"])
        sys.argv = [script, *argv]
        sys.path[0:0] = [str(Path(script).parent)]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__file__ = script
        exec(compile(Path(script).read_text(), script, "exec"), vars(main))

    return run


def serve() -> dict[str, Any]:
    """Returns in each fork, with what was asked."""
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            return dict(json.loads(line))
        _, status, used = os.wait4(child, 0)
        spent = {"seconds": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}
        os.write(1, json.dumps({"code": os.waitstatus_to_exitcode(status)} | spent).encode() + b"\n")
    os._exit(0)


def become(asked: dict[str, Any]) -> None:
    for number, path in enumerate((os.devnull, asked["stdout"], asked["stderr"])):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    if asked["gone"]:
        Path(asked["cwd"]).rmdir()


def ended(run: Callable[..., None], given: dict[str, Any]) -> int:
    """The exit code of what is run."""
    code = 1
    try:
        run(**given)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    run = {"gputune": import_gputune, "torch": import_torch}[sys.argv[1]]()
    asked = serve()
    become(asked)
    os._exit(ended(run, asked["given"]))  # the interpreter's own end takes longer than all the rest
