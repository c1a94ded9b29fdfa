"""Which programs `gputune apply` reaches, and how.

The command gets environment variables, which every process below it inherits, and the folder of a small `sitecustomize` first on
PYTHONPATH, through which every Python below it sets torch's flags right after its own `import torch`: scripts, `python -m`,
zipapps, shells, torchrun, `accelerate launch`, Jupyter kernels, workers of DataLoader and multiprocessing by fork, spawn and
forkserver, and the interpreters of other virtual environments (3.11 and newer; older ones step aside).

Beyond its reach are

- `python -I` and `-E`, which ignore PYTHONPATH: `gputune install-hook` reaches them in one interpreter, opt-in;
- `python -S`, which runs nothing at its start;
- what is started with another environment: `sudo`, `su -`, `ssh`, `env -i`, `docker run`, `kubectl exec`, a cluster of Ray or Dask
  that runs already. Put `gputune apply` behind them: `sudo gputune apply profile.yaml -- python train.py`;
- a program that puts a `sitecustomize` of its own in front later and does not run the one behind it.

Where none of this fits, `gputune.apply("profile.yaml")` at the start of a script does the same from within.

Source: executed with Python 3.8 to 3.13; `python --help`, site and sudo(8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import PurePath

PYTHON = re.compile(r"python(\d+(\.\d+)?)?t?")
WITH_A_VALUE = "WX"
"""Python's options whose value may be a word of its own. `-c` and `-m` end the options."""

CLEANING = {"sudo", "su", "doas", "ssh", "pdsh", "docker", "podman", "kubectl", "machinectl"}
"""Programs that give what they start an environment of its own."""


def beyond_reach(command: Sequence[str]) -> str | None:
    """Why torch's flags will not be set below a command, as far as its own words tell; None where nothing speaks against it."""
    if not command:
        return None
    name = PurePath(command[0]).name
    if name in CLEANING:
        return f"{name} gives its command an environment of its own: put gputune apply behind it"
    if name == "env" and {"-i", "-", "--ignore-environment"} & set(_options(command[1:])):
        return "env -i drops the variables that gputune sets"
    option = _isolating(command[1:]) if PYTHON.fullmatch(name) else None
    if option is None:
        return None
    if option == "S":
        return f"{name} -S runs nothing at its start, so torch's flags will not be set"
    return (
        f"{name} -{option} ignores PYTHONPATH, so torch's flags are set only where gputune install-hook was run for it"
    )


def _options(words: Sequence[str]) -> list[str]:
    """Those before the first operand."""
    return list(takewhile(lambda word: word.startswith("-"), words))


def _isolating(words: Sequence[str]) -> str | None:
    """The first option of a Python that keeps the shim out."""
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
