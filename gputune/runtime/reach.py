"""Which programs `gputune apply` reaches, and how.

The command gets environment variables, which every process below it inherits. One is PYTHONPATH, beginning with the
folder of a small `sitecustomize`, through which every Python sets torch's flags right after its own `import torch`:
scripts, `python -m`, zipapps, shells, torchrun, `accelerate launch`, Jupyter kernels, workers of DataLoader and
multiprocessing by fork, spawn and forkserver, and the interpreters of other virtual environments (3.11 and newer; older
ones step aside).

It does not reach

- `python -I` and `-E`, which ignore PYTHONPATH: `gputune install-hook` reaches them in one interpreter, opt-in;
- `python -S`, which runs no site code at startup;
- programs started with another environment: `sudo`, `su -`, `ssh`, `env -i`, `docker run`, `kubectl exec`, a Ray or
  Dask cluster that is already running. Put `gputune apply` behind them: `sudo gputune apply profile.yaml -- python
  train.py`;
- a program that later puts its own `sitecustomize` first and does not run the one behind it.

In these cases `gputune.apply("profile.yaml")` at the start of a script works from within.

Source: tried with Python 3.8 to 3.13; `python --help`, site and sudo(8).
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import PurePath

PYTHON = re.compile(r"python(\d+(\.\d+)?)?t?")
WITH_A_VALUE = "WX"
"""Python's options whose value may be a separate word. `-c` and `-m` end the options."""

CLEANING = {"sudo", "su", "doas", "ssh", "pdsh", "docker", "podman", "kubectl", "machinectl"}
"""Programs that start their command with an environment of its own."""


def beyond_reach(command: Sequence[str]) -> str | None:
    """Why torch's flags will not be set below a command, as far as its own words show; None where they will be."""
    if not command:
        return None
    name = PurePath(command[0]).name
    if name in CLEANING:
        return f"{name} gives its command an environment of its own: put gputune apply behind it"
    options = takewhile(lambda word: word.startswith("-"), command[1:])
    if name == "env" and {"-i", "-", "--ignore-environment"}.intersection(options):
        return "env -i drops the variables that gputune sets"
    option = _isolating(command[1:]) if PYTHON.fullmatch(name) else None
    if option is None:
        return None
    if option == "S":
        return f"{name} -S runs no site code at startup, so torch's flags will not be set"
    reached = "so torch's flags are set only where gputune install-hook was run for it"
    return f"{name} -{option} ignores PYTHONPATH, {reached}"


def _isolating(words: Sequence[str]) -> str | None:
    """The letter of Python's first option that keeps the shim out; None where no option does."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--") or word.startswith("--"):
            return None
        for place, letter in enumerate(word[1:], start=2):
            if letter in "ISE":
                return letter
            if letter in "cm":
                return None
            if letter in WITH_A_VALUE:
                if place == len(word):
                    next(rest, None)
                break
    return None
