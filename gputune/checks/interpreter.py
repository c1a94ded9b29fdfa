"""Is the torch that was looked at the one that `python` uses here?

gputune looks at the torch of the interpreter that it runs under. Installed by itself (pipx, uv tool) it has a torch of its
own, which need not be the one that trains: `gputune check --python PATH` looks at another. A file torch.py, or a folder
torch, beside a script is taken for torch by that script.

Source: gputune's own design.
"""

from gputune.checks._answers import ok, unread, warning
from gputune.checks._common import Facts, Findings, Measurements, reason


def check(facts: Facts, measurements: Measurements) -> Findings:
    asked, theirs = facts.libraries.torch_folder, facts.libraries.path_torch_folder
    python = facts.libraries.path_python or ""
    why = reason(facts, "libraries.torch")
    if facts.libraries.executable is None or (why and "No module named 'torch'" not in why):
        yield unread(facts, "libraries.torch", "which Python was asked")
    elif facts.libraries.shadow:
        message = f"./{facts.libraries.shadow} stands before torch for programs that start in this folder"
        yield warning(message, "start them elsewhere, or give it another name", facts.libraries.shadow)
    elif facts.libraries.executable != facts.libraries.own_python:
        yield ok(f"looked at, as asked: {asked or facts.libraries.executable}")
    elif reason(facts, "libraries.path_torch_folder"):
        yield unread(facts, "libraries.path_torch_folder", f"looked at: {asked or 'no torch'}; the torch of {python}")
    elif theirs and theirs != asked:
        message = f"looked at: {asked or 'no torch'}; but the torch of {python} is {theirs}"
        yield warning(message, f"gputune check --python {python}", python)
    else:
        yield ok(f"looked at: {asked or facts.libraries.executable}")
