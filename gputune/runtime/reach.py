"""Which programs `gputune apply` reaches, and how.

The command gets environment variables, which every process below it inherits. One is PYTHONPATH, beginning with the
folder of a small `sitecustomize`, through which every Python sets torch's flags right after its own `import torch`:
scripts, `python -m`, zipapps, shells, torchrun, `accelerate launch`, Jupyter kernels, workers of DataLoader and
multiprocessing by fork, spawn and forkserver, and the interpreters of other virtual environments (3.11 and newer; older
ones step aside).

It does not reach

- programs whose PYTHONPATH was replaced, instead of extended, behind `gputune apply`: by `env PYTHONPATH=...`, or in a
  shell script. Set it in front of gputune, or write `PYTHONPATH=src:$PYTHONPATH` in the script;
- `python -I` and `-E`, which ignore PYTHONPATH;
- `python -S`, which runs no site code at startup;
- programs started with another environment: `sudo`, `su -`, `ssh`, `env -i`, `docker run`, `kubectl exec`, `srun
  --export=NONE`, a Ray or Dask cluster that is already running. Put `gputune apply` behind them: `sudo gputune apply
  profile.yaml -- python train.py`;
- a program that later puts its own `sitecustomize` first and does not run the one behind it;
- a Python older than 3.11, which says so when it imports torch.

`gputune install-hook` reaches the first two kinds in one interpreter, opt-in. What the words of the command show is
warned of before it starts. What happens later, in a script, cannot be seen from outside: with GPUTUNE_REPORT=1 every
Python that was reached and imported torch reports at its end, so one without a report was not reached. `gputune status`
in such a script says so and exits with 1. In all these cases `gputune.apply("profile.yaml")` at the start of a script
works from within.

Source: tried with Python 2.7 and 3.6 to 3.13; `python --help`, site, sudo(8), env(1) and srun(1).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import PurePath

from gputune.live import payload
from gputune.runtime.environment import SHIM
from gputune.runtime.launch import LAUNCHERS, PYTHON

_WITH_A_VALUE = "WX"
"""Python's options whose value may be a separate word. `-c` and `-m` end the options."""

_CLEANING = {"sudo", "su", "doas", "ssh", "pdsh", "docker", "podman", "kubectl", "machinectl"}
"""Programs that start their command with an environment of its own."""
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
_PASSING = {
    "chrt", "exec", "ionice", "nice", "nohup", "numactl", "setsid", "srun", "stdbuf", "taskset", "time", "timeout",
}  # fmt: skip
"""Programs, and words of a shell, that run the rest of their words in their own environment."""
_KEYWORDS = {"!", "{", "command", "do", "else", "exec", "export", "if", "then", "time", "until", "while"}
"""Words of a shell behind which a command, or an assignment, begins."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Beyond:
    """Why torch's flags will not be set below a command."""

    why: str
    python: str | None = None
    """The interpreter in which a file of `gputune install-hook` sets them all the same; None for no such thing."""


_REPLACED = "PYTHONPATH is replaced behind gputune apply, so torch's flags will not be set: set it in front of gputune"


def beyond_reach(command: Sequence[str]) -> Beyond | None:
    """Whether torch's flags will not be set below a command, as far as its own words show; None where they will be."""
    return _beyond(command, is_replaced=False)


def is_cut_off(environ: Mapping[str, str]) -> bool:
    """Whether `gputune apply` was in front of this process, and its folder is not on PYTHONPATH any more."""
    return bool(environ.get(payload.VARIABLE)) and _hides("PYTHONPATH", environ.get("PYTHONPATH", ""))


def _beyond(words: Sequence[str], *, is_replaced: bool) -> Beyond | None:
    name = PurePath(words[0]).name if words else ""
    if why := _cleans(name, words):
        return Beyond(why)
    if name == "env":
        return _behind_env(list(words[1:]), is_replaced=is_replaced)
    if PYTHON.fullmatch(name):
        return _in_python(name, words, is_replaced=is_replaced)
    if name in _SHELLS and (text := _text_of(words[1:])) is not None:
        return _in_shell(text, is_replaced=is_replaced)
    rest = list(dropwhile(lambda word: not _is_told_of(word), words[1:])) if name in _PASSING else []
    if rest:
        return _beyond(rest, is_replaced=is_replaced)
    return Beyond(_REPLACED) if is_replaced else None


def _cleans(name: str, words: Sequence[str]) -> str:
    if name in _CLEANING:
        return f"{name} gives its command an environment of its own: put gputune apply behind it"
    if name == "srun" and any(word.startswith("--export=") and "ALL" not in word[9:].split(",") for word in words):
        return "srun --export without ALL drops the variables that gputune sets"
    return ""


def _is_told_of(word: str) -> bool:
    name = PurePath(word).name
    return name in _CLEANING | _SHELLS | _PASSING | LAUNCHERS | {"env"} or PYTHON.fullmatch(name) is not None


def _in_python(name: str, words: Sequence[str], *, is_replaced: bool) -> Beyond | None:
    letters = set(_isolating(words[1:]))
    if "S" in letters:
        return Beyond(f"{name} -S runs no site code at startup, so torch's flags will not be set")
    if letters:
        reached = "so torch's flags are set only where gputune install-hook was run for it"
        return Beyond(f"{name} -{min(letters)} ignores PYTHONPATH, {reached}", words[0])
    return Beyond(f"{_REPLACED}, or run gputune install-hook for this Python", words[0]) if is_replaced else None


def _behind_env(rest: list[str], *, is_replaced: bool) -> Beyond | None:
    """`rest` are the words after `env`: its options, assignments, and the command."""
    while rest:
        word = rest.pop(0)
        if word in ("-", "--ignore-environment") or re.fullmatch("-[0v]*i[0iv]*", word):
            return Beyond("env -i drops the variables that gputune sets")
        if word in ("-u", "--unset", "-C", "--chdir", "-S", "--split-string") and rest:
            word = f"{word[:2]}{rest.pop(0)}" if len(word) == 2 else f"{word}={rest.pop(0)}"
        option, _, value = (word[:2], "", word[2:]) if re.match("-[uCS]", word) else word.partition("=")
        if option in ("-S", "--split-string"):
            rest[:0] = split(value)
        elif option in ("-u", "--unset"):
            is_replaced = is_replaced or _hides(value, "")
        elif assigned := _ASSIGNMENT.fullmatch(word):
            is_replaced = is_replaced or _hides(*assigned.groups())
        elif not word.startswith("-"):
            return _beyond([word, *rest], is_replaced=is_replaced)
    return None


def _in_shell(text: str, *, is_replaced: bool) -> Beyond | None:
    """The first of the commands in a shell's text that is beyond reach."""
    for words in _commands(text):
        start = 0
        replaced = is_replaced
        while start < len(words) and (words[start] in _KEYWORDS or _ASSIGNMENT.fullmatch(words[start])):
            if assigned := _ASSIGNMENT.fullmatch(words[start]):
                replaced = replaced or _hides(*assigned.groups())
            start += 1
        if start == len(words):  # no command: the shell's own variables, all the rest of the text
            is_replaced = replaced
        elif words[start] == "unset":
            is_replaced = is_replaced or any(_hides(name, "") for name in words[start:])
        elif not _is_told_of(words[start]):
            continue
        elif beyond := _beyond(words[start:], is_replaced=replaced):
            return beyond
    return None


def _commands(text: str) -> Iterator[list[str]]:
    import shlex

    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("();<>|&"):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # quotes that do not end
        return
    yield words


def split(text: str) -> list[str]:
    """The words of a line as a shell splits it; none where its quotes do not end."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        return []


def _text_of(words: Sequence[str]) -> str | None:
    """The text that a shell is given with -c; None where it runs a file."""
    rest = iter(words)
    for word in rest:
        if re.fullmatch("-[A-Za-z]*c[A-Za-z]*", word):
            return next((text for text in rest if not text.startswith("-")), None)
        if word in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
            next(rest, None)
        elif not word.startswith(("-", "+")):
            return None
    return None


def _hides(name: str, value: str) -> bool:
    """Whether a Python does not find gputune's folder with this value of a variable."""
    return name == "PYTHONPATH" and SHIM not in value.split(":") and not re.search(r"\$\{?PYTHONPATH", value)


def _isolating(words: Sequence[str]) -> Iterator[str]:
    """The letters of Python's options that keep the shim out."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--") or word.startswith("--"):
            return
        for place, letter in enumerate(word[1:], start=2):
            if letter in "ISE":
                yield letter
            if letter in "cm":
                return
            if letter in _WITH_A_VALUE:
                if place == len(word):
                    next(rest, None)
                break
