"""The one door for text that leaves for a file or report that others may read: nothing in it tells who and where.

Logins and queries are cut from URLs. The home folder becomes `~`; the names of user and host, the ids of the
scheduler's job and of the pod, and the user in another `/home/...` become the words USER, HOST, JOB and POD. A name
that many machines share (root, ubuntu, localhost) tells nothing and stays. A name that may be a word of prose (will,
max, train) is replaced only if what stands around it says that it is a name.
"""

import os
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

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
_USER_ID = re.compile(r"(\buid_|/user-|/run/user/|\buser USER \()[1-9]\d*")
_OF_OTHERS = re.compile(r"(?<![\w.-])/(home|Users)/(?!USER\b)[^/\s:;,'\"()\[\]]+")
_JOB = re.compile(r"(?<![A-Za-z])(job(?:[ _-]?id)?[ ._=:-]{0,2})\d+(?:[._]\d+)*", re.IGNORECASE)
_POD = re.compile(r"pod[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")

# The bounds keep the time in proportion to the text, whatever stands in it. JSON may escape slashes.
_SCHEME, _END = r"(:\\?/\\?/)", r"\s/\\?#\"'<>|"
_LOGINS = (
    # A password with a character that ends a host's name goes up to the last @ of the word: in doubt more is cut.
    (re.compile(rf"{_SCHEME}(?:[^{_END}:@]*:[^\s\"'<>|]{{0,1000}}@|[^{_END}]*@)"), r"\1"),
    # A host's name with anything but a port behind its colon is a login that was cut off.
    (re.compile(rf"{_SCHEME}[^{_END}:\[]*:(?!\d{{0,5}}(?:[^\w:]|\Z))[^{_END}]*"), r"\1..."),
    (re.compile(r"(:\\?/\\?/[^\s?#\"'<>]{0,1000}[?#])[^\s\"'<>]+"), r"\1..."),
)


class Cleaner:
    """Replaces what tells who and where; `counts` says how many texts each kind was replaced in."""

    def __init__(self, whose: Owner) -> None:
        self.counts: Counter[str] = Counter()
        self._steps: list[tuple[str, re.Pattern[str], str]] = [
            *(("login", pattern, word) for pattern, word in _LOGINS),
            *(("home folder", re.compile(rf"(?<![\w.-]){re.escape(path)}(?![\w-]|\.\w)"), "~") for path in whose.homes),
            ("home folder of others", _OF_OTHERS, r"/\1/USER"),
            ("pod", _POD, "podPOD"),
            *(("host name", _named(name), r"\1HOST") for name in whose.hosts),
            *(("user name", _named(name), r"\1USER") for name in whose.users),
            *(("job", _job(name), "JOB") for name in whose.jobs),
            ("job", _JOB, r"\1JOB"),
            ("user id", _USER_ID, r"\1UID"),
        ]

    def text(self, text: str) -> str:
        for kind, pattern, word in self._steps:
            text, times = pattern.subn(word, text)
            self.counts[kind] += bool(times)
        return text

    def all(self, value: Any, only: Collection[str] | None = None, key: str | None = None) -> Any:
        """The data with its texts cleaned: all of them, or those that stand under one of the keys `only`."""
        if isinstance(value, str):
            if only is None and key in _BY_KEY and value and value.lower() not in COMMON:
                self.counts[_KINDS[_BY_KEY[key]]] += 1
                return _BY_KEY[key]
            return self.text(value) if only is None or key in only else value
        if isinstance(value, dict):
            if only is None and value.get("uid") and value.get("user"):
                self.counts["user id"] += 1
                value = {**value, "uid": None}  # the id of a user without a name is what a finding is about
            return {name: self.all(one, only, name) for name, one in value.items()}
        return type(value)(self.all(one, only, key) for one in value) if isinstance(value, list | tuple) else value


def cleaner() -> Cleaner:
    """A cleaner of what this process writes."""
    return Cleaner(owner(os.environ))


def without_logins(text: str) -> str:
    """The text without the names, passwords and queries of its URLs."""
    for pattern, word in _LOGINS:
        text = pattern.sub(word, text)
    return text


def _named(name: str) -> re.Pattern[str]:
    """The name of a user or host, behind what is kept."""
    if len(name) >= _FEWEST and not (name.isalpha() and len(name) <= LONGEST_WORD):
        return re.compile(rf"((?<![A-Za-z0-9])){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)
    before = (
        r"(/(?:[\w.-]{0,64}_)?|@|(?i:\b(?:user(?:name)?|logname|owner|hostname|\w{0,20}addr)[=:]\s?[\"']?)|\bhost "
        rf"|\buser (?=\w+ \()|(?<![\w.-])(?={re.escape(name)}(?:@[A-Za-z0-9]|:\d{{4,5}}\b)))"
    )
    return re.compile(rf"{before}{re.escape(name)}(?![A-Za-z0-9_-]|\.\w)")


def _job(name: str) -> re.Pattern[str]:
    """An id. A number is one only in a path or behind a word, since it may be any other number."""
    if not name.isdigit():
        return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
    before = r"(?:(?<=/)|(?<=[A-Za-z][._-]))" if len(name) >= _FEWEST else r"(?<=job_)"
    return re.compile(rf"{before}{name}(?![A-Za-z0-9])")
