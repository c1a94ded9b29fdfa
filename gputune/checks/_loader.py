"""Remedies that take folders out of the variables by which the loader finds libraries before those of torch."""

import re
import shlex
from collections.abc import Collection

from gputune.checks._remedies import pip, torch_build, torch_index, typed
from gputune.facts import Facts


def without_folders(facts: Facts, folders: Collection[str]) -> str | None:
    """Shell commands that take these folders out of LD_LIBRARY_PATH, and libraries in them out of LD_PRELOAD; None if
    neither variable names one of them (but perhaps a link to it).
    """
    commands = []
    for variable, separator in (("LD_LIBRARY_PATH", ":"), ("LD_PRELOAD", "[: ]")):
        entries = [entry for entry in re.split(separator, facts.environment.get(variable, "")) if entry]
        left = [entry for entry in entries if not _inside(entry, folders)]
        if len(left) < len(entries):
            commands.append(f"export {variable}={shlex.quote(':'.join(left))}" if left else f"unset {variable}")
    return " && ".join(commands) or None


def without_copies(facts: Facts, library: str) -> str:
    """Take out the folder from which a library (`cudnn`) was loaded that is not torch's own; where no variable names
    it, torch itself is old.
    """
    own = {path.rpartition("/")[0] for path in facts.libraries.bundled}
    folders = {path.rpartition("/")[0] for path in facts.libraries.loaded if f"/lib{library}" in path} - own
    upgrade = f"{pip(facts)} install --upgrade torch{torch_index(torch_build(facts))}"
    taken = without_folders(facts, folders)
    return typed(taken, note=f"or, if torch itself is that old: {upgrade}") if taken else upgrade


def _inside(entry: str, folders: Collection[str]) -> bool:
    path = entry.rstrip("/")
    return path in folders or (path.rpartition("/")[0] in folders and ".so" in path)
