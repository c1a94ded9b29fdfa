"""All settings: the value, the gain with its interval drawn, and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gputune.profile import Profile
from gputune.report.answer import Answer
from gputune.report.answer_words import NETWORKS, SAMPLES
from gputune.report.charts import number
from gputune.report.page.markup import NOTHING, TIMES, TO, Markup, element
from gputune.report.page.scale import Scale
from gputune.report.tables import value_text
from gputune.settings import Choice

WIDE, TALL = 120.0, 18.0
SCALE = Scale(low=0.5, high=4.0, start=7, end=WIDE - 7, logarithmic=True)
"""One for all, so that gains can be compared. What lies beyond it has an arrow at its end."""
COLUMNS = ("setting", "value", "gain", "why")


def section(profile: Profile, answer: Answer) -> Iterator[Markup]:
    """One table of the general choices, the chosen ones first, and one for each kind of network, samples or program."""
    tables = [("In general", _ordered(profile.settings, answer))]
    names = NETWORKS | SAMPLES
    tables += [(f"For {names.get(family, family)}", choices) for family, choices in profile.families.items()]
    tables += [(f"For {one.entry}, as tuned", one.settings) for one in profile.programs if one.settings]
    chosen = {(one.family, one.name) for one in answer.chosen}
    yield element(
        "p",
        "The gain is the speed of the alternative over torch's default, also where the default is kept; the dotted "
        "line is where both are as fast.",
        class_="note",
    )
    box = element("input", id="filter", type="search", autocomplete="off")
    yield element(
        "p", element("label", "Filter the settings", for_="filter"), box, class_="filter scripted", hidden=True
    )
    for title, choices in tables:
        if choices:
            away = {name for family, name in chosen if not family} if title == "In general" else set(choices)
            yield element("h3", title)
            yield _table(title, choices, away)


def _ordered(choices: Mapping[str, Choice], answer: Answer) -> Mapping[str, Choice]:
    first = [one.name for one in answer.chosen if not one.family]
    names = [*first, *(name for name in choices if name not in first)]
    return {name: choices[name] for name in names}


def _table(title: str, choices: Mapping[str, Choice], away: set[str]) -> Markup:
    """Roles are written out, since a phone shows the rows as blocks, which are no table to a screen reader."""
    heads = (element("th", name, role="columnheader", scope="col", class_=f"c-{name}") for name in COLUMNS)
    rows = (_row(name, choice, name in away) for name, choice in choices.items())
    return element(
        "table",
        element("thead", element("tr", *heads, role="row"), role="rowgroup"),
        element("tbody", *rows, role="rowgroup"),
        class_="settings",
        role="table",
        aria_label=title,
    )


def _row(name: str, choice: Choice, away: bool) -> Markup:
    cells = (
        element("code", name),
        element("b" if away else "span", value_text(choice.value)),
        _gain(choice),
        element("span", choice.reason, *_marks(choice)),
    )
    kind = "away" if away else None
    data = f"{choice.gain or 0:.6g}"
    drawn = (
        element("td", cell, role="cell", class_=f"c-{column}") for column, cell in zip(COLUMNS, cells, strict=True)
    )
    return element("tr", *drawn, role="row", class_=kind, data_gain=data)


def _marks(choice: Choice) -> Iterator[str]:
    said = {
        "not measured": choice.unmeasured,
        "provisional": choice.provisional,
        f"stands since {choice.since}": choice.since,
    }
    for words, holds in said.items():
        if holds:
            yield " "
            yield element("span", words, class_="tag unknown" if words != f"stands since {choice.since}" else "tag")


def _gain(choice: Choice) -> Markup:
    if choice.gain is None:
        return element("span", NOTHING, class_="none", aria_label="no figure", role="img")
    interval = f"{number(choice.interval[0])}{TO}{number(choice.interval[1])}" if choice.interval else ""
    text = element(
        "span", element("b", f"{number(choice.gain)}{TIMES}"), " ", element("small", interval), class_="figure"
    )
    return element("div", text, _drawn(choice.gain, choice.interval), class_="gain")


def _drawn(gain: float, interval: tuple[float, float] | None) -> Markup:
    middle, one = TALL / 2, SCALE(1.0)
    parts = [
        element("path", d=f"M4 {middle}H{WIDE - 4}", class_="line"),
        element("path", d=f"M{one} 2V{TALL - 2}", class_="base"),
    ]
    if interval:
        low, high = sorted(SCALE(edge) for edge in interval)
        parts.append(
            element("path", d=f"M{low} {middle - 3}v6M{low} {middle}H{high}M{high} {middle - 3}v6", class_="whisker")
        )
    parts.append(_dot(gain, middle))
    return element("svg", *parts, class_="mini", viewBox=f"0 0 {WIDE:.0f} {TALL:.0f}", aria_hidden="true")


def _dot(gain: float, y: float) -> Markup:
    if gain > SCALE.high:
        return element("path", d=f"M{WIDE - 10} {y - 4.5}l9 4.5l-9 4.5z", class_="dot")
    if gain < SCALE.low:
        return element("path", d=f"M10 {y - 4.5}l-9 4.5l9 4.5z", class_="dot")
    return element("circle", cx=SCALE(gain), cy=y, r=3.5, class_="dot")
