"""A profile as one page for a browser: the answer, charts, findings, settings, and the profile itself.

The page is whole: it asks for nothing from anywhere, and its policy forbids that it ever does. Without its script,
which adds buttons and folds, everything is shown. Pure.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from gputune.profile import Profile, dump_json, parse
from gputune.report.answer import answer_of
from gputune.report.chart_list import groups
from gputune.report.page import answer, rest
from gputune.report.page.drawing import figure
from gputune.report.page.markup import Markup, element, joined

SECTIONS = {
    "answer": "The answer",
    "charts": "Charts",
    "findings": "Findings",
    "settings": "Settings",
    "unknown": "Not measured",
    "machine": "The machine",
    "profile": "The profile",
}


def text(profile: Profile, path: str) -> str:
    """What tells who and where is left out, as in every profile that is written. Raises MeasureError where the profile
    is larger than one may be.
    """
    data = dump_json(profile)
    profile = parse(data.encode(), lambda said: None)  # what was left out of it is not shown either
    # Nothing in the JSON ends a script or begins a comment.
    data = data.translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&"})
    style, script = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    title = rest.name(profile.fingerprint)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", f"{title}: gputune"),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        element("a", "Skip to the answer", href="#answer", class_="skip"),
        _header(profile, title),
        _contents(),
        element("main", *_sections(profile, path)),
        element("footer", element("p", f"Written by gputune from a profile of gputune {profile.gputune}.")),
        element("div", id="said", role="status", class_="unseen"),
        element("script", Markup(data), type="application/json", id="data"),
        element("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _policy(style: str, script: str) -> str:
    """Nothing but this very style sheet and this very script; where they go is nowhere."""
    styles, scripts = (
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in (style, script)
    )
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _header(profile: Profile, title: str) -> Markup:
    found = profile.fingerprint
    versions = [("torch", found.torch), ("CUDA", found.cuda), ("cuDNN", found.cudnn), ("driver", found.driver)]
    said = ", ".join(f"{name} {version}" for name, version in versions if version)
    toggle = element("button", "Dark", type="button", id="theme", class_="scripted", hidden=True)
    return element(
        "header",
        element("div", element("p", "gputune", class_="brand"), toggle, class_="top"),
        element("h1", title),
        element("p", said, element("br"), f"Measured on {rest.when(profile.created)}", class_="sub"),
    )


def _contents() -> Markup:
    links = [element("li", element("a", title, href=f"#{name}")) for name, title in SECTIONS.items()]
    unfold = element(
        "button", "Fold all", type="button", id="fold", class_="scripted", hidden=True, aria_expanded="true"
    )
    return element("nav", element("ul", *links, element("li", unfold)), aria_label="Contents")


def _sections(profile: Profile, path: str) -> Iterator[Markup]:
    found = answer_of(profile, path)
    charts = list(_charts(profile))
    parts: dict[str, Iterable[str]] = {
        "answer": answer.section(found),
        "charts": charts or [element("p", "Nothing was measured that a chart would show.")],
        "findings": answer.findings(profile.findings),
        "settings": rest.choices(profile, found),
        "unknown": rest.unknown(profile, found),
        "machine": [rest.machine(profile)],
        "profile": rest.saved(f"{PurePath(path).stem[:80] or 'profile'}.json"),
    }
    for name, inner in parts.items():
        heading = element("h2", SECTIONS[name], id=f"{name}-title")
        yield element("section", heading, *inner, id=name, aria_labelledby=f"{name}-title")


def _charts(profile: Profile) -> Iterator[Markup]:
    found = list(groups(profile))
    if found:
        yield element(
            "p",
            "Whiskers are intervals at 99 %. A star marks what is recommended. Below each picture are its numbers.",
            class_="note",
        )
    for title, charts in reversed(found):
        yield element("div", element("h3", title), joined(map(figure, charts)), class_="group")
