"""The one door for text that leaves for a file or report that others may read: nothing in it tells who and where.

Logins and queries are cut from URLs. The home folder becomes `~`; the names of user and host, the ids of the
scheduler's job and of the pod, and the user in another `/home/...` become the words USER, HOST, JOB and POD. A name
that many machines share (root, ubuntu, localhost) tells nothing and stays. A name that may be a word of prose (will,
max, train) is replaced only if what stands around it says that it is a name.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

TEXTS = ("message", "reason", "remedy", "subject")
"""The keys of findings, gaps and choices whose text may quote a path, an error or a variable. All others are names and
values of closed lists, which are compared later."""

USERS = ("LOGNAME", "USER", "LNAME", "USERNAME", "SUDO_USER", "SLURM_JOB_USER", "PBS_O_LOGNAME", "NB_USER")
HOSTS = (
    "HOSTNAME", "NODE_NAME", "POD_NAME", "MASTER_ADDR", "SLURMD_NODENAME", "SLURM_SUBMIT_HOST",
    "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST", "LSB_SUB_HOST", "PBS_O_HOST",
)  # fmt: skip
JOBS = (
    "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID", "LSB_JOBID", "PBS_JOBID", "JOB_ID", "COBALT_JOBID",
    "FLUX_JOB_ID", "OAR_JOB_ID",
)  # fmt: skip
"""The variables that hold nothing but such a name or id."""

COMMON = frozenset({
    "root", "nobody", "user", "users", "guest", "admin", "administrator", "ubuntu", "debian", "centos", "fedora",
    "rocky", "ec2-user", "azureuser", "vagrant", "jovyan", "runner", "coder", "dev", "developer", "app", "data",
    "test", "docker", "podman", "slurm", "nvidia", "cuda", "gpu", "torch", "pytorch", "python", "conda", "home",
    "tmp", "usr", "var", "opt", "lib", "bin", "etc", "run", "proc", "sys", "mnt", "srv", "work", "workspace",
    "scratch", "localhost", "localhost.localdomain", "127.0.0.1", "0.0.0.0", "::1", "::", "host", "node",  # noqa: S104
    "gputune", "job", "nonexistent", "project", "h100", "h200", "gh200", "b200", "gb200", "a100", "v100", "l40s",
    *(f"gpu{index}" for index in range(16)),
})  # fmt: skip

LONGEST_WORD = 5
"""A user's name of up to so many letters and nothing else may be a word of prose or of an option."""
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
    (re.compile(rf"{_SCHEME}(?:[^{_END}:@]*:\S{{0,1000}}@|[^{_END}]*@)"), r"\1"),
    # A host's name with anything but a port behind its colon is a login that was cut off.
    (re.compile(rf"{_SCHEME}[^{_END}:\[]*:(?!\d{{0,5}}(?:[^\w:]|\Z))\S*"), r"\1..."),
    (re.compile(r"(:\\?/\\?/[^\s?#\"'<>]{0,1000}[?#])[^\s\"'<>]+"), r"\1..."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose machine it is: what `Cleaner` replaces."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


class Cleaner:
    """Replaces what tells who and where; `counts` says how many texts each kind was replaced in."""

    def __init__(self, whose: Owner) -> None:
        self.counts: Counter[str] = Counter()
        self._steps: list[tuple[str, re.Pattern[str], str]] = [
            *(("login", pattern, word) for pattern, word in _LOGINS),
            *(("home folder", re.compile(rf"(?<![\w.-]){re.escape(path)}(?![\w-]|\.\w)"), "~") for path in whose.homes),
            ("home folder of others", _OF_OTHERS, r"/\1/USER"),
            ("pod", _POD, "podPOD"),
            *(("host name", _host(name), r"\1HOST") for name in whose.hosts),
            *(("user name", _user(name), r"\1USER") for name in whose.users),
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
    return Cleaner(owner(os.environ))


def _user(name: str) -> re.Pattern[str]:
    return _named(name, is_word=name.isalpha() and len(name) <= LONGEST_WORD)


def _host(name: str) -> re.Pattern[str]:
    """The name, and a domain of two words or more: one is a file's kind. Any word may name a host (compute)."""
    return _named(name, is_word=name.isalpha(), more=r"(?:(?:\.[A-Za-z0-9-]{1,63}){2,8}(?![A-Za-z0-9_-]))?+")


def _named(name: str, *, is_word: bool, more: str = "") -> re.Pattern[str]:
    """The name of a user or host, behind what is kept; a word is a name only where what stands around it says so."""
    if len(name) >= _FEWEST and not is_word:
        return re.compile(rf"((?<![A-Za-z0-9])){re.escape(name)}{more}(?![A-Za-z0-9])", re.IGNORECASE)
    before = (
        r"(/(?:[\w.-]{0,64}_)?|@|(?i:\b(?:user(?:name)?|logname|owner|hostname|\w{0,20}addr)[=:]\s?[\"']?)|\bhost "
        rf"|\buser (?=\w+ \()|(?<![\w.-])(?={re.escape(name)}(?:@[A-Za-z0-9]|:\d{{4,5}}\b)))"
    )
    return re.compile(rf"{before}{re.escape(name)}{more}(?![A-Za-z0-9_-]|\.\w)")


def _job(name: str) -> re.Pattern[str]:
    """An id. A number is one only in a path or behind a word, since it may be any other number."""
    if not name.isdigit():
        return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
    before = r"(?:(?<=/)|(?<=[A-Za-z][._-]))" if len(name) >= _FEWEST else r"(?<=job_)"
    return re.compile(rf"{before}{name}(?![A-Za-z0-9])")


def owner(environ: Mapping[str, str]) -> Owner:
    """The owner of this process, by its environment, /etc/passwd and the kernel's name of the host."""
    import pwd

    try:
        known = pwd.getpwuid(os.getuid())
        name, home = known.pw_name, known.pw_dir
    except KeyError:  # a user id without a name
        name, home = "", ""
    homes = {path.rstrip("/") for path in (environ.get("HOME", ""), home) if path.startswith("/")}
    homes |= {os.path.realpath(path) for path in homes if path}
    return Owner(
        homes=tuple(sorted(homes - {"", "/"}, key=lambda path: (-len(path), path))),
        users=_names(_users([*_values(environ, USERS), name, *(path.rpartition("/")[2] for path in homes)])),
        hosts=_names(_hosts(environ, os.uname().nodename)),
        jobs=_names(_jobs(environ)),
    )


def _users(found: Iterable[str]) -> Iterator[str]:
    """The names with and without their domain, before `@` or a backslash. A short number may be any other number."""
    for name in found:
        for part in (name, name.partition("@")[0], name.rpartition("\\")[2]):
            if not part.isdigit() or len(part) > LONGEST_WORD:
                yield part


def _hosts(environ: Mapping[str, str], node: str) -> Iterator[str]:
    """The names with and without their domain; a list of Slurm's (`node[01-04],login1`) as a whole, and its names."""
    yield from (node, node.partition(".")[0])
    for variable in HOSTS:
        value = environ.get(variable, "").strip()
        for name in (value, *value.split(",")):
            if re.match(r"[A-Za-z]", name) and ("[" not in name or name == value):
                yield from (name, name.partition(".")[0] if "[" not in name else name)
            elif re.fullmatch(r"[\d.]+\.[\d.]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*", name):  # an address
                yield name


def _jobs(environ: Mapping[str, str]) -> Iterator[str]:
    """The ids with and without the server's name. JOB_ID is the Grid Engine's, if it is there at all."""
    grid_engine = "SGE_ROOT" in environ or "PE" in environ
    for value in _values(environ, [name for name in JOBS if name != "JOB_ID" or grid_engine]):
        yield from (part for part in (value, value.partition(".")[0]) if re.search(r"\d", part))


def _values(environ: Mapping[str, str], names: Collection[str]) -> Iterator[str]:
    return (environ[name].strip() for name in names if environ.get(name, "").strip())


def _names(found: Iterable[str]) -> tuple[str, ...]:
    """The names that tell something, the longest first."""
    return tuple(
        sorted({name for name in found if name and name.lower() not in COMMON}, key=lambda one: (-len(one), one))
    )
