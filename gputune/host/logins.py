"""Logins cut from text that others may read: `user:password@` and the query of URLs, and values called a password.

Every step takes time in proportion to the text, whatever stands in it.
"""

import re
from collections.abc import Iterator

_SCHEME = re.compile(r"(:\\?/\\?/)")  # JSON may escape the slashes
_SPACES = re.compile(r"(\s+)")
_AUTHORITY_ENDS = re.compile(r"[/\\?#\"'<>|]")
_HOST_AND_PORT = re.compile(r"(\[[^\]]*+\]|[^:]*+)(:\d{0,5})?[^\w:]*+")
_QUERY = re.compile(r"[?#][^\"'<>\s]+")
_LOGIN_BEGINS = re.compile(r"[\"'<>|]")
_PATH = re.compile(r"[/\\]")
_NAMES = (
    r"(?:password|passwd|passphrase|secret|token|credentials?|authorization|cookie|jwt"
    r"|(?:api|access|secret|private|account|signing|shared|encryption|master)[ _-]?key"
    r"|(?<![a-z])pass(?==)|(?<![a-z])pwd(?==(?!/)))"  # `first pass: 3 ms` and PWD=/folder are no passwords
)
_VALUE = (
    r"(?:(\\[\"'])(?:(?!\\[\"']).)*+|\"(?:[^\"\\]|\\.)*+|'(?:[^'\\]|\\.)*+"
    r"|(?:[^\s\"']|[\"'](?![\s,;:)}\]]|\Z))+)"
)
"""What stands in quotes, up to the closing one; without quotes, up to the next blank."""
_SECRET = re.compile(
    rf"((?:{_NAMES}[\"']?\s{{0,3}}[=:]\s{{0,3}}|--[\w-]{{0,40}}?(?:{_NAMES}|pass|pwd)[\"']?,?\s{{1,3}}(?!-))"
    rf"(?:(?:bearer|basic|token)\s{{1,3}})?|\bbearer\s{{1,3}})({_VALUE})",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|(?:gh[a-z]_|github_pat_|glpat-|sk-)[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{8,}"
    r"|AKIA[A-Z0-9]{16}(?![A-Za-z0-9])|(?<![_-])eyJ[\w-]{5,}+\.[\w-]{5,}+\.[\w-]*+)"
)
"""Tokens that tell by how they begin what they are."""
_QUOTED = re.compile(r"(\\?[\"'])((?:bearer|basic|token)\s{1,3})?", re.IGNORECASE)
_CUT = "..."


def without_logins(text: str) -> str:
    """The text without what comes before `@` in a URL or in `user:password@host`, without what follows `?` or `#` in a
    URL, without the values of what is called a password, secret, token or key, and without tokens of known services.

    In doubt more is cut: a password may hold any character, and a URL may have been cut off within it.
    """
    if "@" in text or _SCHEME.search(text):
        text = "".join(_words(_SPACES.split(text)))
    return _TOKEN.sub(_CUT, _SECRET.sub(_hidden, text))


def _hidden(found: re.Match[str]) -> str:
    """What is called a secret, with its quotes, and with the word that says of which kind it is."""
    opens = _QUOTED.match(found[2])
    return f"{found[1]}{opens[0] if opens else ''}{_CUT}"


def _words(parts: list[str]) -> Iterator[str]:
    """Words and the spaces between them. A word may end within a URL's password, and the next one tell the rest."""
    ended = False
    for place, part in enumerate(parts):
        if place % 2:
            yield part
            continue
        pieces = _SCHEME.split(part)
        yield part.rpartition("@")[2] if ended and len(pieces) == 1 else _word(part)
        last = pieces[-1]
        ended = len(pieces) > 1 and ":" in last and "@" not in last and not _AUTHORITY_ENDS.search(last)


def _word(text: str) -> str:
    """A text without spaces, which may hold several URLs."""
    before, *rest = _SCHEME.split(text)
    schemes, urls = rest[::2], rest[1::2]
    return _bare(before) + "".join(scheme + _url(url) for scheme, url in zip(schemes, urls, strict=True))


def _url(text: str) -> str:
    """What follows `://`, up to the next URL."""
    ends = _AUTHORITY_ENDS.search(text)
    authority, rest = (text[: ends.start()], text[ends.start() :]) if ends else (text, "")
    if "@" in authority:
        same = _LOGIN_BEGINS.split(rest, maxsplit=1)[0]
        if ":" in authority and "@" in same:  # the password holds an @ and a character that ends a host's name
            authority, rest = "", rest[same.rindex("@") + 1 :]
        authority = authority.rpartition("@")[2]
    elif ":" in authority and "@" in rest:  # the password holds a character that ends a host's name
        authority, rest = "", rest.rpartition("@")[2]
    elif not _HOST_AND_PORT.fullmatch(authority):  # no port, so it is a login that was cut off
        authority = _CUT
    return authority + _QUERY.sub(lambda found: found[0][0] + _CUT, _bare(rest))


def _bare(text: str) -> str:
    """Text without a scheme, in which only `user:password@` is a login."""
    *pieces, last = text.split("@")
    kept, cutting = [], False
    for piece in pieces:
        begins = max((found.end() for found in _LOGIN_BEGINS.finditer(piece)), default=0)
        path = _PATH.split(piece[begins:])
        if ":" in path[0] or (cutting and not begins):
            cutting = True
        else:
            cutting = ":" in path[-1]
            begins = len(piece) - len(path[-1])
        kept.append(piece[:begins] if cutting else f"{piece}@")
    return "".join(kept) + last
