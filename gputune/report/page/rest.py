"""All settings with their gains and reasons, what was not measured, the machine, and the profile itself."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from gputune.advice import Choice
from gputune.facts.precision import hardware_text
from gputune.knobs import value_text
from gputune.profile import Fingerprint, Profile
from gputune.report.answer import Answer
from gputune.report.answer_parts import NETWORKS, SAMPLES
from gputune.report.charts import number
from gputune.report.page.markup import NOTHING, TIMES, TO, Markup, element
from gputune.report.severities import by_reason
from gputune.resources.printable import counted

COLUMNS = ("setting", "value", "gain", "why")


def choices(profile: Profile, answer: Answer) -> Iterator[Markup]:
    """One table of the general choices, the chosen ones first, and one for each kind of network, samples or program."""
    chosen = {one.name: profile.settings[one.name] for one in answer.chosen if not one.family}
    tables = [("In general", chosen | profile.settings)]
    names = NETWORKS | SAMPLES
    tables += [(f"For {names.get(family, family)}", values) for family, values in profile.families.items()]
    tables += [(f"For {one.entry}, as tuned", one.settings) for one in profile.programs if one.settings]
    yield element(
        "p",
        "The gain is the speed of the alternative over torch's default, also if the default is kept.",
        class_="note",
    )
    box = element("input", id="filter", type="search", autocomplete="off")
    yield element(
        "p", element("label", "Filter the settings", for_="filter"), box, class_="filter scripted", hidden=True
    )
    for title, values in tables:
        if values:
            yield element("h3", title)
            yield _table(title, values, away=set(chosen if title == "In general" else values))


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
    drawn = (
        element("td", cell, role="cell", class_=f"c-{column}") for column, cell in zip(COLUMNS, cells, strict=True)
    )
    return element("tr", *drawn, role="row", class_="away" if away else None, data_gain=f"{choice.gain or 0:.6g}")


def _marks(choice: Choice) -> Iterator[str]:
    marks = (
        (choice.unmeasured, "not measured", "tag unknown"),
        (choice.provisional, "provisional", "tag unknown"),
        (choice.since, f"stands since {choice.since}", "tag"),
    )
    for holds, words, kind in marks:
        if holds:
            yield " "
            yield element("span", words, class_=kind)


def _gain(choice: Choice) -> Markup:
    if choice.gain is None:
        return element("span", NOTHING, class_="none", aria_label="no figure", role="img")
    interval = f"{number(choice.interval[0])}{TO}{number(choice.interval[1])}" if choice.interval else ""
    text = element(
        "span", element("b", f"{number(choice.gain)}{TIMES}"), " ", element("small", interval), class_="figure"
    )
    return element("div", text, class_="gain")


def unknown(profile: Profile, answer: Answer) -> Iterator[Markup]:
    choices = (
        ("Settings that were not measured", answer.unmeasured, "torch's default stands until they are"),
        ("Settings whose measurement was disturbed", answer.provisional, "torch's default stands until it is repeated"),
    )
    for title, names, meaning in choices:
        if names:
            yield element("h3", title)
            yield element("p", f"{', '.join(names)}: {meaning}.")
    gaps = [("this machine", profile.gaps), *((one.entry, (*one.gaps, *one.refused)) for one in profile.programs)]
    for whose, found in gaps:
        if found:
            yield element("h3", f"Not known of {whose}")
            groups = by_reason(found).items()
            lines = (element("div", element("dt", ", ".join(facts)), element("dd", reason)) for reason, facts in groups)
            yield element("dl", *lines, class_="gaps")
    if not any((answer.unmeasured, answer.provisional, *(found for _, found in gaps))):
        yield element("p", "Everything that this version measures was measured.")


def machine(profile: Profile) -> Markup:
    found = profile.fingerprint
    rows = {
        "GPU": gpu(found),
        "Compute capability": found.compute_capability,
        "Hardware": hardware_text(found.compute_capability, found.gpu or ""),
        "Driver": found.driver,
        "torch": found.torch,
        "CUDA": found.cuda,
        "cuBLAS": found.cublas,
        "cuDNN": found.cudnn,
        "CPU": found.cpu or "unknown model",
        "CPUs for this process": str(found.cpu_budget or "unknown"),
        "Measured": when(profile.created),
        "By gputune": profile.gputune,
        "Holds": f"{counted(len(profile.measurements), 'measurement')}, {counted(len(profile.findings), 'finding')}",
    }
    lines = (element("div", element("dt", name), element("dd", text)) for name, text in rows.items() if text)
    return element("dl", *lines, class_="machine")


def gpu(found: Fingerprint) -> str | None:
    return f"{found.gpu_count} x {found.gpu}" if found.gpu and found.gpu_count > 1 else found.gpu


def name(found: Fingerprint) -> str:
    return gpu(found) or found.cpu or "A machine of unknown model"


def when(created: str) -> str:
    try:
        at = datetime.fromisoformat(created)
        return f"{at.astimezone(UTC) if at.tzinfo else at:%-d %B %Y, %H:%M} UTC"
    except (ValueError, OverflowError):
        return created


def saved(name: str) -> Iterator[Markup]:
    yield element(
        "p", "The whole profile, with all samples, is part of this page. What is saved is a profile that gputune reads."
    )
    button = element("button", f"Save {name}", type="button", class_="save scripted", hidden=True, data_name=name)
    yield element("p", button)
    yield element("p", "With scripts on, a button here saves it.", class_="unscripted note")
