"""The answer at the top of the page (what is wrong, what is gained, what to type next), and the findings."""

import re
from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.report.answer import Answer, By, Gain, Step
from gputune.report.answer_parts import AFTER, WITHOUT, name_of, times
from gputune.report.charts import Mark, Picture
from gputune.report.page.drawing import draw, folded
from gputune.report.page.markup import TIMES, Markup, element, joined
from gputune.report.severities import FAIL_ON, WORST_FIRST, merged
from gputune.resources.printable import quoted

ALONE, MIXED = "gputune apply alone", "--numerics mixed"


def section(answer: Answer) -> Iterator[Markup]:
    if answer.wrong:
        yield element("h3", "What is wrong")
        yield _listed(answer.wrong)
    figures = [gain for gain in answer.gains if gain.times is not None and gain.by not in WITHOUT]
    if figures:
        yield element("h3", "What is gained, in speed over torch's defaults")
        yield element("ul", *map(_card, figures), class_="cards")
    rest = [element("li", f"{name_of(one)}: ", _coded(_why_not(one))) for one in answer.gains if one not in figures]
    if rest:
        yield element("ul", *rest, class_="rest")
    if not answer.gains:
        yield element("p", "Nothing was measured that would tell what is to be gained.")
    if answer.next:
        yield element("h3", "What to type next")
        yield element("ol", *(_step(one.step, one.words) for one in answer.next), class_="steps")


def _coded(text: str) -> Markup:
    parts = text.split("`")
    return joined(element("code", part) if place % 2 else part for place, part in enumerate(parts))


def _why_not(gain: Gain) -> str:
    if gain.why:
        return gain.why
    if gain.by is By.NONE and gain.kind == "samples":
        return "best without workers"
    return gain.by.value if gain.by in WITHOUT else f"{gain.by.value}; how much was not measured"


def _card(gain: Gain) -> Markup:
    workers = f", with {gain.workers} workers" if gain.workers else ""
    how = f"{gain.by.value}{workers}{_lacks(gain)}"
    return element(
        "li",
        element("p", name_of(gain), class_="who"),
        element("p", f"{'probably ' if gain.by is By.PROBABLY else ''}{times(gain.times or 0.0)}{TIMES}", class_="big"),
        draw(Picture(unit="times as fast", rows=dict(_marks(gain)), base=1.0), f"The speed of {name_of(gain)}"),
        element("p", _coded(how), class_="how"),
        element("p", gain.guard, class_="how") if gain.guard else "",
        class_="card",
    )


def _marks(gain: Gain) -> Iterator[tuple[str, tuple[Mark]]]:
    yield "all of it", (Mark(value=gain.times or 0.0, interval=gain.interval, chosen=True),)
    for name, reach in ((MIXED, gain.by_mixed), (ALONE, gain.by_apply)):
        if reach and gain.by in (By.MIXED, By.SCRIPT) and (reach.times != gain.times or reach.without):
            yield name, (Mark(value=reach.times, interval=reach.interval),)


def _lacks(gain: Gain) -> str:
    """What goes in with --numerics mixed, and is not in its figure."""
    without = gain.by_mixed.without if gain.by_mixed else ()
    if gain.by is not By.SCRIPT or not without:
        return ""
    return f"; the figure of `{MIXED}` is without {' and '.join(without)}, which go in as well"


def _step(step: Step, words: tuple[str, ...]) -> Markup:
    text = words[0] if step is Step.REPAIR and len(words) == 1 else quoted(*words)
    return element(
        "li", element("p", f"{AFTER[step][0].upper()}{AFTER[step][1:]}"), _command(text.partition("  # ")[0])
    )


def findings(every: Sequence[Finding]) -> Iterator[Markup]:
    """Those that ask for something; the others can be unfolded."""
    for severity in WORST_FIRST:
        found = [one for one in every if one.severity == severity]
        if found:
            title = f"{severity.replace('_', ' ').capitalize()}: {len(found)}"
            if severity in FAIL_ON["unknown"]:
                yield element("h3", title)
                yield _listed(found)
            else:
                yield folded(title, _listed(found), kind="quiet")
    if not every:
        yield element("p", "This profile has no findings.")


def _listed(findings: Sequence[Finding]) -> Markup:
    """As on a terminal, what is the same of several GPUs or checks is said once."""
    by_severity = {severity: [one for one in findings if one.severity == severity] for severity in WORST_FIRST}
    lines = (_line(severity, *said) for severity, found in by_severity.items() for said in merged(found))
    return element("ul", *lines, class_="findings")


def _line(severity: str, checks: str, message: str, remedy: str | None) -> Markup:
    """The command of a remedy may be copied apart from what is to be known of it."""
    word = element("span", severity.lower().replace("_", " "), class_=f"tag {severity.lower()}")
    said = element("p", word, " ", element("b", checks), " ", message)
    typed, mark, comment = (remedy or "").partition("  # ")
    comment = element("p", comment, class_="comment") if mark else ""
    return element("li", said, element("div", _command(typed), comment, class_="remedy") if remedy else "")


def _command(text: str) -> Markup:
    """One command. The button, which a script shows, copies the text exactly as it stands here. A line ends between
    words, and not behind one of the hyphens of an option.
    """
    button = element(
        "button", "Copy", type="button", class_="copy scripted", hidden=True, aria_label=f"Copy: {text[:80]}"
    )
    words = (element("span", word) if word.strip() else word for word in re.split(r"(\s+)", text))
    return element("div", element("code", *words), button, class_="command")
