"""The answer that a profile gives, as data: what is wrong, what is gained and how, what was chosen, what was not
measured, and what to type next. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gputune import benches
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.profile import Profile
from gputune.recommend import provisional
from gputune.report import next_steps
from gputune.report.answer_parts import By, Chosen, Gain, Next, Reach, Step
from gputune.report.gains import gains
from gputune.settings import names

__all__ = ["Answer", "By", "Chosen", "Gain", "Next", "Reach", "Step", "answer_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a reader of a profile wants to know first."""

    path: str
    """The profile's file, as commands name it."""
    wrong: tuple[Finding, ...]
    """The errors, then the warnings."""
    gains: tuple[Gain, ...]
    chosen: tuple[Chosen, ...]
    """The settings away from torch's default, the largest gain first."""
    at_default: tuple[str, ...]
    """Those at torch's default everywhere, apart from the next two."""
    unmeasured: tuple[str, ...]
    provisional: tuple[str, ...]
    next: tuple[Next, ...]
    elsewhere: str = ""
    """The profile's device, where commands will be typed on another machine."""
    without_result: tuple[Gap, ...] = ()
    """The benches of this kind of device, and their networks, that have no rows although there was time, and why."""
    unknown: int = 0
    """How many checks could not tell."""


def answer_of(profile: Profile, path: str, again: Sequence[str] | None = None, *, is_elsewhere: bool = False) -> Answer:
    """The answer of the profile in the file `path`. `again` is the command that measures again what is provisional,
    where it is known how the profile was measured; `is_elsewhere` that commands will be typed on a machine without the
    profile's device.
    """
    path = f"./{path}" if path.startswith("-") else path  # which commands would take for an option
    found = tuple(gains(profile))
    chosen = tuple(sorted(_chosen(profile), key=lambda one: -(one.gain or 0.0)))
    waiting = tuple(provisional(profile.settings, profile.families))
    gaps = tuple(_without_result(profile))
    failed = tuple(dict.fromkeys(gap.fact.split(".")[1] for gap in gaps))
    away = {one.name for one in chosen} | set(waiting)
    unmeasured = tuple(name for name, choice in profile.settings.items() if choice.unmeasured and name not in away)
    elsewhere = profile.fingerprint.device or "" if is_elsewhere else ""
    steps = (
        next_steps.elsewhere(profile, path, found)
        if elsewhere
        else next_steps.next_steps(profile, path, found, again or next_steps.again(profile, path), failed)
    )
    return Answer(
        path=path,
        elsewhere=elsewhere,
        wrong=tuple(one for severity in ("ERROR", "WARNING") for one in profile.findings if one.severity == severity),
        gains=found,
        chosen=chosen,
        at_default=tuple(name for name in profile.settings if name not in away and name not in unmeasured),
        unmeasured=unmeasured,
        provisional=waiting,
        next=tuple(steps),
        without_result=gaps,
        unknown=len({one.check for one in profile.findings if one.severity == "UNKNOWN"}),
    )


def _without_result(profile: Profile) -> Iterator[Gap]:
    known, kind = benches.names(), "cuda" if profile.fingerprint.gpu else "cpu"
    for gap in profile.gaps:
        prefix, bench, *part = [*gap.fact.split("."), "", ""][:3]
        if prefix != "bench" or gap.cause == "no_time" or bench not in known or kind not in benches.load(bench).SECONDS:
            continue
        rows = [row for row in profile.measurements if row.bench == bench]
        if not any(not part[0] or part[0] in row.params.values() for row in rows):
            yield gap


def _chosen(profile: Profile) -> Iterator[Chosen]:
    """The general choices, and those of families whose value is another one."""
    known = names()
    for family, choices in (("", profile.settings), *profile.families.items()):
        for name, choice in choices.items():
            general = profile.settings.get(name)
            if name not in known or (family and general and general.value == choice.value):
                continue
            if next_steps.is_away(name, choice):
                yield Chosen(name=name, value=choice.value, gain=choice.gain, interval=choice.interval, family=family)
