"""Words that name a program of the user's where gputune expects a profile or a verb, and what to type instead."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath

from gputune.errors import UsageError
from gputune.resources.printable import quoted
from gputune.runtime.launch import LAUNCHERS, PYTHON
from gputune.runtime.locate import AUTO
from gputune_start import NOT_EXECUTABLE, NOT_FOUND

_INTERPRETERS = {".py": "python", ".sh": "sh"}
_OF_SCRIPTS = ("torchrun", "accelerate")
_NO_SCRIPT = {"-m", "--module", "--no-python", "--no_python"}
_PLAIN_OPTION = re.compile("-[bBdEiIOPqsSuvx]+|-[WX].+")
"""Python's options that take no word behind them."""
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


class NotFound(UsageError):
    """The command of `gputune apply` is not one."""

    exit_code = NOT_FOUND


class NotExecutable(UsageError):
    """The command of `gputune apply` is there, and may not be executed."""

    exit_code = NOT_EXECUTABLE


def require_no_script(words: Sequence[str], verb: str) -> None:
    """Raises UsageError where a script stands first that is no command by itself."""
    name = words[0]
    if PurePath(name).suffix in _INTERPRETERS and os.path.isfile(name) and shutil.which(name) is None:
        found = UsageError if verb != "apply" else NotExecutable if "/" in name else NotFound
        raise found(f"{name} is a script, not a command", f"type: {_to_run(words, *_typed_before(words, verb))}")


def require_a_command(words: Sequence[str], verb: str) -> None:
    """Raises UsageError where a command or the script that it names is not there, as far as its words show."""
    from difflib import get_close_matches

    from gputune.runtime.reach import split

    require_no_script(words, verb)
    name = words[0]
    if shutil.which(name) is None:
        if "/" in name and os.path.isfile(name):
            raise UsageError(f"{name}: it may not be executed", f"type: chmod +x {quoted(name)}")
        if os.path.isdir(name):
            raise UsageError(f"{name} is a folder", f"name a command: gputune {verb} -- python train.py")
        if (parts := split(name))[1:]:
            typed = _to_run([*parts, *words[1:]], *_typed_before(words, verb))
            raise UsageError(f"'{name}' was quoted as one word", f"type: {typed}")
        near = get_close_matches(name, filter(shutil.which, ("python", "python3", *LAUNCHERS)), n=1)
        kind = "file" if "/" in name or PurePath(name).suffix in _INTERPRETERS else "command"
        remedy = f"did you mean {near[0]}?" if near else f"name one that is there: gputune {verb} -- python train.py"
        raise UsageError(f"{name}: there is no such {kind}", remedy)
    script = _script(words)
    if script and not os.path.exists(script) and shutil.which(script) is None:
        raise UsageError(f"{script}: there is no such file", "name one that is there")
    if script and os.path.isdir(script) and not os.path.exists(os.path.join(script, "__main__.py")):
        raise UsageError(f"{script} is a folder without a __main__.py", "name the script in it")


def _typed_before(words: Sequence[str], verb: str) -> list[str]:
    """The verb with what was typed before these words."""
    before = sys.argv[1 : -len(words)] if sys.argv[-len(words) :] == list(words) else [verb]
    return before[:-1] if before[-1:] == ["--"] else before


def _script(words: Sequence[str]) -> str | None:
    """The script that Python, a shell or a launcher is to run; None where the words do not show it for certain."""
    name, rest = PurePath(words[0]).name, list(words[1:])
    if name in _OF_SCRIPTS:
        place = next((place for place, word in enumerate(rest) if word.endswith(".py")), 0)
        is_certain = place and not rest[place - 1].startswith("-") and _NO_SCRIPT.isdisjoint(rest[:place])
        return rest[place] if is_certain else None
    if PYTHON.fullmatch(name):
        while rest and _PLAIN_OPTION.fullmatch(rest[0]):
            del rest[0]
    elif name not in ("sh", "bash"):
        return None
    return rest[0] if rest and not rest[0].startswith(("-", "+")) else None


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
    if os.path.isfile(word):
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
    return word == AUTO or PurePath(word).suffix in _PROFILES or os.path.isfile(word)


def _to_run(words: Sequence[str], *verb: str) -> str:
    interpreter = _INTERPRETERS.get(PurePath(words[0]).suffix)
    first = [interpreter] if interpreter and shutil.which(words[0]) is None else []
    return quoted("gputune", *verb, "--", *first, *words)
