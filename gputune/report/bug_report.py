"""A bug report as Markdown: what a maintainer asks for first, and nothing that tells who and where.

Each section is a block of plain text, so that nothing in it is taken for a link, a mention or an image. The report fits
where it is discussed: what comes last is cut.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.host.shared_text import Cleaner
from gputune.host.stderr import as_printed
from gputune.profile import Profile
from gputune.report.severities import WORST_FIRST
from gputune.runtime.status import Status

MOST_BYTES = 60_000
"""GitHub takes 65,536 characters in one text."""
LONGEST_SECTION = 16_000
_CUT = "... the rest is cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str
    lines: tuple[str, ...]
    longest: int = LONGEST_SECTION


def section(title: str, read: Callable[[], Iterable[str]], longest: int = LONGEST_SECTION) -> Section:
    """A section with the lines of `read`; where that fails, with a line that says how: the others matter more."""
    try:
        lines = tuple(read())
    except Exception as error:
        lines = (f"could not be read: {type(error).__name__}: {error}",)
    return Section(title=title, lines=lines, longest=longest)


def text(sections: Sequence[Section], clean: Cleaner, hidden: int) -> str:
    """The report; `hidden` environment variables are set of which no value is shown."""
    blocks = [_block(one, clean) for one in sections]
    head = f"# gputune bug report\n\n{_left_out(clean.counts, hidden)}"
    whole = "\n\n".join([head, *blocks])
    return whole if len(whole.encode()) <= MOST_BYTES else f"{_cut(whole, MOST_BYTES)}\n{_CUT}\n```"


def _block(one: Section, clean: Cleaner) -> str:
    body = "\n".join(_line(clean.text(line)) for line in one.lines) or "none"
    cut = body if len(body.encode()) <= one.longest else f"{_cut(body, one.longest)}\n{_CUT}"
    return f"## {one.title}\n\n```text\n{cut}\n```"


def _line(text: str) -> str:
    """Nothing ends the block."""
    return as_printed(text).replace("```", "'''")


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def _left_out(counts: Counter[str], hidden: int) -> str:
    replaced = ", ".join(f"{kind} {times}" for kind, times in sorted(counts.items()) if times)
    return (
        "Left out: the names and values of "
        f"{hidden} environment variables, all but those that torch and NVIDIA's libraries document. "
        f"Replaced, by the number of texts: {replaced or 'nothing'}. "
        "No file but gputune's own was read. Look it over before you send it."
    )


def findings(found: Sequence[Finding]) -> list[str]:
    """The findings, the worst first; of those that are well only the checks' names."""
    lines = []
    for severity in WORST_FIRST:
        same = [one for one in found if one.severity == severity]
        if severity in ("OK", "NOT_APPLICABLE"):
            names = ", ".join(dict.fromkeys(one.check for one in same))
            lines += [f"{severity}: {names}"] if same else []
            continue
        for one in same:
            lines.append(f"{severity} {one.check}{f' ({one.subject})' if one.subject else ''}: {one.message}")
            lines += [f"  -> {one.remedy}"] if one.remedy else []
    return lines


def gaps(found: Sequence[Gap]) -> list[str]:
    return [f"{gap.fact}: {gap.reason}{f' ({gap.cause})' if gap.cause else ''}" for gap in found]


def status(found: Status) -> list[str]:
    shown = ("setting", "before", "after", "status", "source", "why")
    head = f"python {found.python}, torch {found.torch}, GPU {found.gpu or 'none'}"
    rows = (row.plain for row in found.settings)
    return [
        f"{head}, applied {found.digest or 'nothing'}",
        *(", ".join(f"{key}={row[key]}" for key in shown if row.get(key) is not None) for row in rows),
    ]


def profile(found: Profile) -> list[str]:
    benches = Counter(row.bench for row in found.measurements)
    return [
        f"created {found.created} by gputune {found.gputune}, {len(found.programs)} programs of the user's",
        f"measured: {', '.join(f'{bench} ({rows} rows)' for bench, rows in benches.items()) or 'nothing'}",
        *(f"{name}: {choice.value} ({choice.reason})" for name, choice in found.settings.items()),
        *(f"not known: {line}" for line in gaps(found.gaps)),
    ]
