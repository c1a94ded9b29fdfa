"""Is the torch that was looked at the one that `python` uses here?

gputune looks at the torch of the interpreter that it runs under. Installed by itself (pipx, uv tool) it has a torch of its
own, which need not be the one that trains: `gputune check --python PATH` looks at another.

Source: gputune's own design.
"""

from gputune.checks._answers import ok, unread, warning
from gputune.checks._common import Facts, Findings, Measurements


def check(facts: Facts, measurements: Measurements) -> Findings:
    asked, theirs = facts.libraries.torch_folder, facts.libraries.path_torch_folder
    python = facts.libraries.path_python or ""
    if facts.libraries.executable is None:
        yield unread(facts, "libraries.torch", "which Python was asked")
    elif theirs and theirs != asked and facts.libraries.executable == facts.libraries.own_python:
        message = f"looked at: {asked or 'no torch'}; but the torch of {python} is {theirs}"
        yield warning(message, f"gputune check --python {python}", python)
    else:
        yield ok(f"looked at: {asked or facts.libraries.executable}")
