"""What was not measured, the machine, and the profile itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from gputune.facts.gap import Gap
from gputune.profile import Fingerprint, Profile
from gputune.report.answer import Answer
from gputune.report.page.markup import Markup, element
from gputune.settings._evidence import counted


def unknown(profile: Profile, answer: Answer) -> Iterator[Markup]:
    """Choices that nothing measured backs, and what could not be read or measured, each with its reason."""
    groups = (
        ("Settings that were not measured", answer.unmeasured, "torch's default stands until they are"),
        ("Settings whose measurement was disturbed", answer.provisional, "torch's default stands until it is repeated"),
    )
    for title, names, meaning in groups:
        if names:
            yield element("h3", title)
            yield element("p", f"{', '.join(names)}: {meaning}.")
    gaps = [("this machine", profile.gaps), *((one.entry, one.gaps) for one in profile.programs)]
    for whose, found in gaps:
        if found:
            yield element("h3", f"Not known of {whose}")
            yield element("dl", *_gaps(found), class_="gaps")
    if not any((answer.unmeasured, answer.provisional, *(found for _, found in gaps))):
        yield element("p", "Everything that this version measures was measured.")


def _gaps(gaps: tuple[Gap, ...]) -> Iterator[Markup]:
    """Grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        reasons.setdefault(gap.reason, []).append(gap.fact)
    for reason, facts in reasons.items():
        yield element("div", element("dt", ", ".join(facts)), element("dd", reason))


def machine(profile: Profile) -> Markup:
    found = profile.fingerprint
    rows = {
        "GPU": gpu(found),
        "Compute capability": found.compute_capability,
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
    """What the page is about, in a few words."""
    return gpu(found) or found.cpu or "A machine of unknown model"


def when(created: str) -> str:
    """The time as it is read best; as it stands where it is none."""
    try:
        at = datetime.fromisoformat(created)
        return f"{at.astimezone(UTC) if at.tzinfo else at:%-d %B %Y, %H:%M} UTC"
    except (ValueError, OverflowError):
        return created


def saved(name: str) -> Iterator[Markup]:
    """How to get the profile out of the page."""
    yield element(
        "p",
        "The whole profile, with all samples, is part of this page. What is saved is a profile that gputune reads.",
    )
    button = element("button", f"Save {name}", type="button", class_="save scripted", hidden=True, data_name=name)
    yield element("p", button)
    yield element("p", "With scripts on, a button here saves it.", class_="unscripted note")
