"""`gputune` as a user types it, and scripts that import torch, without most of a start's time: each is a fork of one
Python that has imported what they need (`fork_server.py`).

What is about the start itself, about what is imported when, or about a variable that Python reads then, is for
`making.gputune`. That each module can be the first that is imported is held by `test_lazy.py`.
"""

import atexit
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from making import environ

SERVER = str(Path(__file__).with_name("fork_server.py"))
_ENVIRON = environ()
"""Not that of the test which happens to be the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A fork that ended; a code of -14 is that of its deadline. The seconds are of CPU, so a busy machine adds none."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float
    mib: float


def server(*python: str, runs: str = "gputune", env: Mapping[str, str] = _ENVIRON) -> Any:
    """Start a Python that is forked for what it `runs`; `python` are the words of its command."""
    words = [*python, SERVER, runs, "serves_tests"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    atexit.register(child.communicate)
    return child


def ran(  # noqa: PLR0917 - as a command has them
    server: Any, given: Mapping[str, Any], env: Mapping[str, str], cwd: Path | str, stdout: Path | None = None,
    gone: bool = False,
) -> Done:  # fmt: skip
    """Run what is `given` in a fork of this server. What goes to a `stdout` of one's own is not read; a folder that is
    to be `gone` is removed as soon as the fork is in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = stdout or Path(folder, "out"), Path(folder, "err")
        for path in (out, err):
            path.touch()
        asked = {"given": given, "env": dict(env), "cwd": str(Path(cwd).resolve()), "gone": gone,
                 "stdout": str(out), "stderr": str(err)}  # fmt: skip
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        return Done(
            returncode=answer["code"], stdout="" if stdout else out.read_text(), stderr=err.read_text(),
            seconds=answer["seconds"], mib=answer["mib"],
        )  # fmt: skip


@cache
def _server() -> Any:
    return server(sys.executable)


def gputune(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | str = ".",
    stdout: Path | None = None,
    of: Any = None,
    gone: bool = False,
) -> Done:
    """As `making.gputune`. `of` is a server of one's own."""
    return ran(of or _server(), {"arguments": arguments}, environ() if env is None else env, cwd, stdout, gone)


def refusal(*arguments: str, code: int = 2, **options: Any) -> str:
    """The one line on stderr of a command that ends with this code and prints nothing else."""
    done = gputune(*arguments, **options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith("gputune: ")
    return done.stderr
