"""The answer on the last screen: at most 24 lines of 80 columns, whatever a profile holds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gputune.host.stderr import one_line
from gputune.report.answer import Answer, Next, Step
from gputune.report.answer_parts import AFTER, PLACEHOLDER, chosen_texts, gain_texts
from gputune.report.fitting import INDENT, clipped, command, cut, fits, listed, wrap
from gputune.report.severities import by_reason, merged
from gputune.resources.printable import counted

MOST_LINES = 24
MOST_WRONG, MOST_GAPS, MOST_NEXT = 6, 2, 7
LEAST_SETTINGS, MOST_SETTINGS = 2, 4
"""Lines of a part. What these leave is for what is gained."""
MOST_MESSAGE, MOST_COMMAND = 2, 3
"""Lines of one finding's message, and of one command."""
EVERY = "every setting with its reason: "
BEFORE_RUNNING = (Step.REPAIR, Step.AGAIN, Step.MEASURE, Step.MEASURE_OTHERS, Step.RETRY, Step.TUNE_AGAIN)


def lines(answer: Answer, width: int, *, written: str = "", stands_above: bool = False) -> list[str]:
    """At most `MOST_LINES` lines of 80 columns, or more of fewer. `written` is the file that was just written. The
    command that shows every setting is left out where that `stands_above`.
    """
    every = _every(answer.path, width)
    after = _next(answer, width, written)
    wrong = [*_wrong(answer, width, every), *_without_result(answer, width)]
    rest = [*_at_default(answer, width), *([] if stands_above else [cut(f"{EVERY}{every}", width)])]
    room = MOST_LINES - len(wrong) - len(after) - len(rest)
    gains = [wrap(text, width) for text in gain_texts(answer.gains)]
    left = max(LEAST_SETTINGS, min(MOST_SETTINGS, room - sum(map(len, gains))))
    settings = listed("settings:", chosen_texts(answer.chosen), width, left)
    shown = _within(gains, room - len(settings), every)
    parts = [[*wrong, *shown], [*settings, *rest], after]
    return _apart([part for part in parts if part])


def _every(path: str, width: int) -> str:
    """The command that shows all, with a placeholder for a path for which there is no room."""
    for name in (path, PLACEHOLDER):
        found = command(["gputune", "show", name, "--all"], width - len(EVERY))
        if found and len(found) == 1:
            return found[0].strip()
    return "gputune show --all"


def _apart(parts: Sequence[list[str]]) -> list[str]:
    """The parts with an empty line between them, as far as there is room for it: the last one first."""
    room = MOST_LINES - sum(map(len, parts))
    said = parts[-1]
    for number, part in enumerate(reversed(parts[:-1])):
        said = [*part, *([""] if number < room else []), *said]
    return said


def _within(items: Sequence[list[str]], room: int, every: str) -> list[str]:
    """As many whole items as there is room for, and how many more there are."""
    found: list[str] = []
    for number, item in enumerate(items):
        last = number + 1 == len(items)
        if len(found) + len(item) > room - (0 if last else 1):
            return [*found, f"and {len(items) - number} more: {every}"]
        found += item
    return found


def _wrong(answer: Answer, width: int, every: str) -> list[str]:
    if not answer.wrong:
        untold = f", and {counted(answer.unknown, 'check')} could not tell" if answer.unknown else ""
        return [cut(f"no fault was found{untold}", width)]
    found = [
        (f"{severity} {name}: {said}", one_line((remedy or "").partition("  # ")[0]).strip())
        for severity in ("ERROR", "WARNING")
        for name, said, remedy in merged([one for one in answer.wrong if one.severity == severity])
    ]
    repaired = 1 if answer.next and answer.next[0].step is Step.REPAIR else 0  # what is typed next stands there
    is_here = not answer.elsewhere  # what repairs that machine is not to be typed on this one
    ways = [_way(remedy, width) if is_here and number >= repaired else [] for number, (_, remedy) in enumerate(found)]
    short = [[cut(said, width)] for said, _ in found]
    long = [clipped(said, width, MOST_MESSAGE) for said, _ in found]
    for messages in (long, short):
        items = [message + way for message, way in zip(messages, ways, strict=True)]
        if sum(map(len, items)) <= MOST_WRONG:
            return _within(items, MOST_WRONG, every)
    return _within(short, MOST_WRONG, every)


def _way(remedy: str, width: int) -> list[str]:
    line = f"{INDENT}-> {remedy}"
    return [line] if remedy and fits(line, width) else []


def _at_default(answer: Answer, width: int) -> Iterator[str]:
    yield from listed("at torch's default:", answer.at_default, width)
    others = " for other programs" if any(one.kind == "program" for one in answer.gains) else ""
    yield from listed(f"not measured{others}:", answer.unmeasured, width)
    yield from listed("provisional:", answer.provisional, width)


def _without_result(answer: Answer, width: int) -> list[str]:
    found = [replace(gap, fact=gap.fact.removeprefix("bench.")) for gap in answer.without_result]
    said = [f"{', '.join(names)} ({reason})" for reason, names in by_reason(found).items()]
    return listed("no result:", said, width, MOST_GAPS)


def _next(answer: Answer, width: int, written: str) -> list[str]:
    steps, there = {one.step for one in answer.next}, answer.elsewhere
    idle = not steps.intersection((Step.PROGRAM, Step.MIXED, Step.APPLY, Step.LOADER, *BEFORE_RUNNING))
    title = [f"written to {written}"] if written else []
    if idle:
        title.append(f"nothing is to be applied: torch's defaults are best {f'on {there}' if there else 'here'}")
    found = [cut(text, width) for text in title]
    found.append(cut(f"next here, where no {there} was found:", width) if there else "next:")
    for number, one in enumerate(answer.next):
        above = [cut(f"next on {there}:", width)] if there and number == 1 else []
        said = _remedy(one, width) if one.step is Step.REPAIR else _command(one, answer.path, width)
        if len(found) + len(above) + len(said) > MOST_NEXT:
            break
        found += above + said
    return found


def _command(one: Next, path: str, width: int) -> list[str]:
    comment = AFTER.get(one.step, "")
    for words in (one.words, [PLACEHOLDER if word == path else word for word in one.words]):
        said = command(words, width, comment)
        if said is not None and len(said) <= MOST_COMMAND:
            above = len(said) > 1 and one.step in BEFORE_RUNNING
            return [cut(f"{INDENT}# {comment}:", width), *said] if above else said
    return [cut(INDENT + " ".join(words), width)]


def _remedy(one: Next, width: int) -> list[str]:
    typed, _, comment = one.words[0].partition("  # ")
    line = INDENT + one_line(typed)
    if not fits(line, width):
        return [INDENT + part.strip() for part in clipped(typed, width - len(INDENT), MOST_COMMAND)]
    remark = f"{line}  # {one_line(comment)}"
    return [remark if comment and fits(remark, width) else line]
