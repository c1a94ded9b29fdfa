"""The answer that a profile gives, as data: what is wrong, what is gained and how, what was chosen, what was not
measured, and what to type next. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gputune import benches
from gputune.advice import Choice
from gputune.advice._evidence import product
from gputune.advice._training_rows import FAMILIES, OPTIONS, Steps, steps, with_precision, without_options
from gputune.advice.dataloader_workers import FAMILIES as KINDS
from gputune.advice.dataloader_workers import bench_of
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.knobs import names
from gputune.knobs.dataloader_workers import WORKERS
from gputune.measurement import Comparison, Measurement
from gputune.probing.recommending import provisional
from gputune.profile import Profile, Program
from gputune.report import next_steps, programs
from gputune.report.answer_parts import By, Chosen, Gain, Next, Reach, Step
from gputune.report.network_charts import SETTINGS, choices_of, combination_chosen, readable
from gputune.search.combination import DEFAULT, Combination

__all__ = ["Answer", "By", "Chosen", "Gain", "Next", "Reach", "Step", "answer_of"]

FLAGS_OF_TORCH = ("matmul_precision", "cudnn_benchmark")
"""The settings of a network that `gputune apply` alone applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
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
    """`again` measures again what is provisional, where it is known how the profile in the file `path` was measured;
    `is_elsewhere`: commands will be typed on a machine without the profile's device.
    """
    path = f"./{path}" if path.startswith("-") else path  # which commands would take for an option
    found = tuple(_gains(profile))
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
        else next_steps.next_steps(profile, path, found, again, failed)
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
    known = names()
    for family, choices in (("", profile.settings), *profile.families.items()):
        for name, choice in choices.items():
            general = profile.settings.get(name)
            if name not in known or (family and general and general.value == choice.value):
                continue
            if next_steps.is_away(name, choice):
                yield Chosen(name=name, value=choice.value, gain=choice.gain, family=family)


def _gains(profile: Profile) -> Iterator[Gain]:
    yield from (_of_program(one) for one in profile.programs)
    rows = readable(profile.measurements)
    for network in FAMILIES:
        if network in profile.families or steps(rows, network, "precision"):
            yield _of_network(network, choices_of(profile, network), rows)
    yield from _of_samples(profile)


def _of_network(network: str, choices: Mapping[str, Choice], rows: list[Measurement]) -> Gain:
    first, second = steps(rows, network, "precision"), steps(rows, network, "options")
    chosen, flags = (combination_chosen(choices, network, names) for names in (SETTINGS, FLAGS_OF_TORCH))
    injected = with_precision(chosen, "bfloat16") if "amp_dtype" in chosen else chosen
    whole = _speed(first, second, chosen)
    return Gain(
        kind="network", name=network, by=_by(choices, whole, (chosen, flags, injected)),
        times=whole.ratio if whole else None, interval=whole.interval if whole else None,
        by_apply=_reach(first, second, flags), by_mixed=_reach(first, second, injected),
    )  # fmt: skip


def _value(choices: Mapping[str, Choice], name: str) -> object:
    return choices[name].value if name in choices else None


def _by(choices: Mapping[str, Choice], whole: Comparison | None, ways: tuple[Combination, ...]) -> By:
    chosen, flags, injected = ways
    if chosen == DEFAULT:
        return _why_nothing(choices)
    if whole is None:
        return By.UNKNOWN
    if whole.verdict != "gain":
        return By.NONE if whole.verdict == "no gain" else By.UNCERTAIN
    if chosen == flags:
        return By.APPLY
    return By.MIXED if chosen == injected else By.SCRIPT


def _why_nothing(choices: Mapping[str, Choice]) -> By:
    known = [choices[name] for name in SETTINGS if name in choices]
    if any(choice.provisional for choice in known):
        return By.PROVISIONAL
    precisions = [choices[name] for name in ("amp_dtype", "matmul_precision") if name in choices]
    return By.UNMEASURED if any(choice.unmeasured for choice in precisions) else By.NONE


def _speed(first: Steps, second: Steps, one: Combination) -> Comparison | None:
    """Over torch's defaults: the product of what precision and memory format gain, and of what the options gain on
    them; None where a row of either is missing.
    """
    alone = without_options(one)
    factors = [_ratio(first, alone, DEFAULT)]
    if one != alone:
        factors.append(_ratio(second, one, alone))
    known = [factor for factor in factors if factor]
    return product(known) if len(known) == len(factors) else None


def _ratio(rows: Steps, one: Combination, base: Combination) -> Comparison | None:
    if one not in rows or base not in rows:
        return None
    return Comparison(ratio=1.0, low=1.0, high=1.0, pairs=0) if one == base else rows[one].against(rows[base])


def _reach(first: Steps, second: Steps, one: Combination) -> Reach | None:
    """With all of a combination, or else without the options that were not measured with the rest."""
    for tried in (one, without_options(one)):
        found = _speed(first, second, tried)
        if found:
            left = [name for name in OPTIONS if name in one.beyond(tried)]
            return Reach(times=found.ratio, interval=found.interval, without=tuple(left))
    return None


def _of_samples(profile: Profile) -> Iterator[Gain]:
    general = bench_of(profile.measurements)
    named = {"decoding" if general == "dataloader" else general: profile.settings}
    named |= {kind: profile.families[kind] for kind in KINDS if kind in profile.families}
    everywhere = _value(profile.settings, WORKERS)
    for kind, choices in named.items():
        choice = choices.get(WORKERS)
        if choice is None or choice.unmeasured:
            continue
        workers = choice.value if isinstance(choice.value, int) else 0
        by = By.PROVISIONAL if choice.provisional else By.NONE
        if workers and not choice.provisional:
            by = By.LOADER if everywhere else By.LOADER_LINES
        known = by in (By.LOADER, By.LOADER_LINES)
        yield Gain(
            kind="samples", name=kind, by=by, workers=workers,
            times=choice.gain if known else None, interval=choice.interval if known else None,
        )  # fmt: skip


def _of_program(program: Program) -> Gain:
    """Its settings were measured together, and each has the gain of all."""
    together = next((choice for choice in program.settings.values() if choice.gain), None)
    by = By.PROBABLY if programs.is_provisional(program) else By.PROGRAM
    if not program.settings:
        by = By.OPEN if programs.seeming(program) else By.NONE
    return Gain(
        kind="program", name=program.entry, by=by,
        times=together.gain if together else None, interval=together.interval if together else None,
        guard=programs.compared(program) if program.settings else "",
        why="" if program.settings else programs.why_nothing(program),
    )  # fmt: skip
