"""Words that name a program of the user's where gputune expects a profile or a verb, and what to type instead."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath

from gputune.errors import UsageError
from gputune.resources.printable import quoted
from gputune.runtime.launch import LAUNCHERS, PYTHON
from gputune.runtime.locate import AUTO

_INTERPRETERS = {".py": "python", ".sh": "sh"}
_PROFILES = (".yaml", ".yml", ".json")
_PROGRAMS_BEGIN = (b"#!", b"\x7fELF")


def require_a_profile(word: str, command: Sequence[str]) -> None:
    """Raises UsageError where the words of `gputune apply` name no profile, and the program stands in its place.

    `PROFILE -- CMD` names one, whatever it is called, if CMD may be a command. Without these dashes, or with dashes
    before both, the first word decides.
    """
    words = [word, *command]
    before = sys.argv[1 : -len(words)] if sys.argv[-len(words) :] == words else ["apply"]
    is_behind_dashes = before[-1:] == ["--"]
    if command[:1] == ["--"]:
        if not command[1:] or not command[1].startswith("-") or not _is_named_as_one(word):
            return
        del words[1]  # `train.py -- --epochs 3`
    if _is_program(word) or (is_behind_dashes and not _may_be_a_profile(word)):
        options = before[before.index("apply") + 1 : -1 if is_behind_dashes else None]
        raise UsageError("no profile was given", f"type: {_to_run(words, 'apply', *options, AUTO)}")


def require_a_command(words: Sequence[str], verb: str) -> None:
    """Raises UsageError where a script stands first that is no command by itself."""
    if PurePath(words[0]).suffix in _INTERPRETERS and shutil.which(words[0]) is None:
        raise UsageError(f"{words[0]} is a script, not a command", f"type: {_to_run(words, verb)}")


def instead(words: Sequence[str]) -> str:
    """The command to type instead, if a script, an interpreter or a launcher stands in a wrong place; else empty."""
    place = next((place for place, word in enumerate(words) if _is_named_as_one(word)), None)
    if place is None:
        return ""
    if "probe" in words[:place]:
        return f"to measure a program: {_to_run(words[place:], 'tune')}"
    return f"to run a program: {_to_run(words[place:], 'apply', AUTO)}"


def _is_program(word: str) -> bool:
    """A file is judged by its first bytes: a profile may be named as a command, and some file systems call everything
    executable.
    """
    if _is_named_as_one(word):
        return True
    if os.path.isfile(word):  # noqa: PTH113 - pathlib raises for a null character
        return PurePath(word).suffix not in _PROFILES and _begins_as_one(word)
    return not _may_be_a_profile(word) and shutil.which(word) is not None


def _is_named_as_one(word: str) -> bool:
    path = PurePath(word)
    return path.suffix in _INTERPRETERS or path.name in LAUNCHERS or PYTHON.fullmatch(path.name) is not None


def _begins_as_one(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4).startswith(_PROGRAMS_BEGIN)
    except OSError:
        return False


def _may_be_a_profile(word: str) -> bool:
    return word == AUTO or PurePath(word).suffix in _PROFILES or os.path.isfile(word)  # noqa: PTH113


def _to_run(words: Sequence[str], *verb: str) -> str:
    interpreter = _INTERPRETERS.get(PurePath(words[0]).suffix)
    first = [interpreter] if interpreter and shutil.which(words[0]) is None else []
    return quoted("gputune", *verb, "--", *first, *words)
