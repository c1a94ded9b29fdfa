"""The one door for text that leaves for a file or report that others may read: nothing in it tells who and where.

Logins are cut (see `logins`). The home folder becomes `~`; the names of user and host, the ids of the scheduler's job
and of the pod, and the user in another `/home/...` become the words USER, HOST, JOB and POD. A name that many machines
share (root, ubuntu, localhost) tells nothing and stays, so that no other word is replaced with it. A name that may be
a word of prose (will, max, train) is replaced only where what stands around it says that it is a name.
"""

import os
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

from gputune.host.logins import without_logins
from gputune.host.owner import COMMON, HOSTS, JOBS, LONGEST_WORD, USERS, Owner, owner

TEXTS = ("message", "reason", "remedy", "subject")
"""The keys of findings, gaps and choices whose text may quote a path, an error or a variable. All others are names and
values of closed lists, which are compared later.
"""

_FEWEST = 3
"""Shorter names and numbers are replaced only where a path or a word before them says what they are."""
_BY_KEY = {
    **dict.fromkeys(("job", *JOBS), "JOB"),
    **dict.fromkeys(("user", "user_variable", *USERS), "USER"),
    **dict.fromkeys(HOSTS, "HOST"),
}
"""Facts and variables that are nothing but such a name."""
_KINDS = {"JOB": "job", "USER": "user name", "HOST": "host name"}
_FILES = r"(?:py|pyc|yaml|yml|json|txt|log|out|err|sh|so|bin|pt|pth|md|toml|csv|npy|npz|cfg|ini|gz|tar|zip)"
_USER_ID = re.compile(r"(\buid_|/user-|/run/user/|\buser USER \()[1-9]\d*")
_OF_OTHERS = re.compile(r"(?<![\w.-])/(home|Users)/(?!USER\b)[^/\s:;,'\"()\[\]]+")
_JOB = re.compile(r"(?<![A-Za-z])(job(?:[ _-]?id)?[ ._=:-]{0,2})\d+(?:[._]\d+)*", re.IGNORECASE)
_POD = re.compile(r"pod[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")
_NOT_IN_A_WORD = r"(?<![A-Za-z0-9])"
_WORD_ENDS = r"(?![A-Za-z0-9])"


class Cleaner:
    """Replaces what tells who and where; `counts` says how many texts each kind was replaced in."""

    def __init__(self, whose: Owner) -> None:
        self.counts: Counter[str] = Counter()
        self._steps: list[tuple[str, re.Pattern[str], str]] = [
            *(("home folder", _home(path), "~") for path in whose.homes),
            ("home folder of others", _OF_OTHERS, r"/\1/USER"),
            ("pod", _POD, "podPOD"),
            *(("host name", _host(name), "HOST") for name in whose.hosts),
            *(("user name", _user(name), r"\g<1>USER") for name in whose.users),
            *(("job", _job(name), "JOB") for name in whose.jobs),
            ("job", _JOB, r"\1JOB"),
            ("user id", _USER_ID, r"\1UID"),
        ]

    def text(self, text: str) -> str:
        cut = without_logins(text)
        self.counts["login"] += cut != text
        for kind, pattern, word in self._steps:
            cut, times = pattern.subn(word, cut)
            self.counts[kind] += bool(times)
        return cut

    def all(self, value: Any, only: Collection[str] | None = None, key: str | None = None) -> Any:
        """The data with its texts cleaned: all of them, or those that stand under one of the keys `only`."""
        if isinstance(value, str):
            if only is None and key in _BY_KEY:
                return self._name(value, _BY_KEY[key])
            return self.text(value) if only is None or key in only else value
        if isinstance(value, dict):
            if only is None and value.get("uid") and value.get("user"):
                self.counts["user id"] += 1
                value = {**value, "uid": None}  # the id of a user without a name is what a finding is about
            return {name: self.all(one, only, name) for name, one in value.items()}
        return type(value)(self.all(one, only, key) for one in value) if isinstance(value, list | tuple) else value

    def _name(self, value: str, word: str) -> str:
        """A fact that is a name and nothing else."""
        if not value or value.lower() in COMMON:
            return value
        self.counts[_KINDS[word]] += 1
        return word


def cleaner() -> Cleaner:
    """A cleaner of what this process writes."""
    return Cleaner(owner(os.environ))


def _home(path: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(path)}(?![\w-]|\.\w)")


def _host(name: str) -> re.Pattern[str]:
    """The name, with a domain behind it. One that is a single word is one only in a path, an address, or said to be."""
    domain = rf"(?:\.(?!{_FILES}(?![A-Za-z0-9.-]))[A-Za-z0-9-]{{1,63}}){{0,8}}"
    if name.isalpha():
        before = rf"(?:(?<=[/@])|(?<=host )|(?<=ADDR=)|(?<=HOSTNAME=)|(?<![\w.-])(?={re.escape(name)}:\d{{4,5}}\b))"
        return re.compile(rf"{before}{re.escape(name)}(?!\.{_FILES}\b){domain}(?![A-Za-z0-9_-])")
    # [01-04] stands for a number in a name, or for itself
    numbers = r"(?:\d{1,9}|\[[\d,-]{1,512}\])"
    pattern = numbers.join(re.escape(part) for part in re.split(r"\[[^\]]*+\]?", name))
    if "[" in name or not re.search(r"\d", name):
        return re.compile(rf"(?<![A-Za-z0-9.-]){pattern}{domain}(?![A-Za-z0-9-])")
    return re.compile(rf"(?<![A-Za-z0-9.]){pattern}{domain}(?![A-Za-z0-9])", re.IGNORECASE)


def _user(name: str) -> re.Pattern[str]:
    """The name, behind what is kept."""
    if len(name) >= _FEWEST and not (name.isalpha() and len(name) <= LONGEST_WORD):
        return re.compile(rf"({_NOT_IN_A_WORD}){re.escape(name)}{_WORD_ENDS}")
    before = (
        r"(/(?:[\w.-]{0,64}_)?|@|(?i:\b(?:user(?:name)?|logname|owner)[=:]\s?[\"']?)|\buser (?=\w+ \()"
        rf"|(?<![\w.-])(?={re.escape(name)}@[A-Za-z0-9]))"
    )
    return re.compile(rf"{before}{re.escape(name)}(?![A-Za-z0-9_])")


def _job(name: str) -> re.Pattern[str]:
    """An id. A number is one only in a path or behind a word, since it may be any other number."""
    if not name.isdigit():
        return re.compile(rf"{_NOT_IN_A_WORD}{re.escape(name)}{_WORD_ENDS}")
    before = r"(?:(?<=/)|(?<=[A-Za-z][._-]))" if len(name) >= _FEWEST else r"(?<=job_)"
    return re.compile(rf"{before}{name}(?![A-Za-z0-9])")
