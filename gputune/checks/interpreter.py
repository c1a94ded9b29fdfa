"""Did gputune examine the torch that the command `python` uses?

gputune examines the torch of the interpreter that it runs under. Installed on its own (pipx, uv tool) it has its own
torch, which may not be the one that trains: `gputune check --python PATH` examines another. A file torch.py or a folder
torch beside a script is imported by that script instead of torch.

Source: gputune's own design.
"""

import shlex

from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning
from gputune.checks._questions import gap
from gputune.checks._remedies import typed


def check(facts: Facts, measurements: Measurements) -> Findings:
    ours, theirs = facts.libraries.torch_folder, facts.libraries.path_torch_folder
    python = facts.libraries.path_python or ""
    failure = gap(facts, "libraries.torch")
    if facts.libraries.executable is None or (failure and failure.cause != "not_installed"):
        yield unread(facts, "libraries.torch", "the path of the interpreter")
    elif shadow := facts.libraries.shadow:
        message = f"programs started in this folder import ./{shadow} instead of torch"
        mine = shadow.partition("/")[0]
        rename = typed(f"mv {mine} my_{mine}", where="in this folder", note="or start programs in another one")
        yield warning(message, rename, shadow)
    elif facts.libraries.executable != facts.libraries.own_python:
        yield ok(f"gputune examined {ours or facts.libraries.executable}, as --python requested")
    elif gap(facts, "libraries.path_torch_folder"):
        what = f"gputune examined {ours or 'no torch'}; the torch of {python}"
        yield unread(facts, "libraries.path_torch_folder", what)
    elif theirs and theirs != ours:
        message = f"gputune examined {ours or 'no torch'}, but {python} uses {theirs}"
        yield warning(message, f"gputune check --python {shlex.quote(python)}", python)
    else:
        yield ok(f"gputune examined {ours or facts.libraries.executable}")
