"""`gputune` as a user types it, without most of a start's time: each command is a fork of one Python that has imported
gputune and what it takes from others. Each runs `gputune` from its first line and ends as a program does.

What is about the start itself, about what is imported when, or about a variable that Python reads then, is for
`making.gputune`. That each module can be the first that is imported is held by `test_lazy.py`.
"""

import atexit
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from making import environ

SECONDS = 120
"""After as many a command is killed by SIGALRM."""

PACKAGES = ("cli", "report", "deploy", "batch_size", "trials", "probing", "runtime", "profile", "checks", "settings")
"""Of gputune, those whose modules are imported once, with all that these import at their tops."""

_SERVER = f"""
import atexit, gc, importlib, json, os, pkgutil, runpy, signal, sys, traceback
import multiprocessing, psutil, pynvml, rich.console, rich.progress, rich.table, statistics, typer, yaml
import gputune.recommend
def any_command(number: int): pass
one = typer.Typer()
one.command()(any_command)
typer.main.get_command(one).main(["3"], standalone_mode=False)  # typer itself imports more with the first value
for package in {PACKAGES!r}:
    for module in pkgutil.iter_modules(importlib.import_module("gputune." + package).__path__):
        importlib.import_module(f"gputune.{{package}}.{{module.name}}")
gc.freeze()
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        break
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    os._exit(0)
signal.alarm({SECONDS})
asked = json.loads(line)
for number, path in enumerate((os.devnull, asked["stdout"], asked["stderr"])):
    opened = os.open(path, os.O_RDWR)
    os.dup2(opened, number)
    os.close(opened)
os.environ.clear()
os.environ.update(asked["env"])
os.chdir(asked["cwd"])
sys.argv = ["gputune", *asked["arguments"]]
code = 1
try:
    runpy.run_module("gputune", run_name="__main__", alter_sys=True)
    code = 0
except SystemExit as ended:
    code = ended.code or 0
except BaseException:
    traceback.print_exc()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # the interpreter's own end takes longer than all the rest
"""


_ENVIRON = environ()
"""Not that of the test which happens to be the first."""


def server(*python: str, env: Mapping[str, str] = _ENVIRON) -> Any:
    """Start a Python that `gputune` can fork: the words of its command."""
    words = [*python, "-c", _SERVER, "serves_tests"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    atexit.register(child.communicate)
    return child


@cache
def _server() -> Any:
    return server(sys.executable)


def gputune(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | str = ".",
    stdout: Path | None = None,
    of: Any = None,
) -> subprocess.CompletedProcess[str]:
    """As `making.gputune`. What goes to a `stdout` of one's own is not read. `of` is a server of one's own."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = stdout or Path(folder, "out"), Path(folder, "err")
        for path in (out, err):
            path.touch()
        given = dict(environ() if env is None else env)
        asked = {"arguments": arguments, "env": given, "cwd": str(Path(cwd).resolve()),
                 "stdout": str(out), "stderr": str(err)}  # fmt: skip
        child = of or _server()
        child.stdin.write(json.dumps(asked) + "\n")
        child.stdin.flush()
        code = int(child.stdout.readline())
        said = "" if stdout else out.read_text()
        return subprocess.CompletedProcess(arguments, code, said, err.read_text())


def refusal(*arguments: str, code: int = 2, **options: Any) -> str:
    """The one line on stderr of a command that ends with this code and prints nothing else."""
    done = gputune(*arguments, **options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith("gputune: ")
    return done.stderr
