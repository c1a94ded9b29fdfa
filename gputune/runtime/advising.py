"""Which choices of a profile may be put into the models of a program, on this machine and within the given limits.

A profile's `families` were measured on reference networks, so they are put in only where the user asks for it. A
profile's `programs` were tuned on purpose, so they need no further word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from gputune import knobs
from gputune.advice import Choice
from gputune.advice.dataloader_workers import bench_of
from gputune.knobs import LEVELS, Numerics, Value
from gputune.knobs.dataloader_workers import WORKERS
from gputune.live.advice import Advice, Loading, TunedProgram
from gputune.live.loader import SETTINGS as LOADERS
from gputune.live.loading import SAMPLES, MeasuredLoading
from gputune.live.models import FAMILIES
from gputune.profile import Fingerprint, Profile, Program
from gputune.runtime.deciding import Terms

Values = dict[str, Value]

DEFAULT_LEVEL: Numerics = "tf32"
"""How far results change by themselves where the user names no level, except for what was tuned on purpose."""
WITHOUT_IMAGES = ("mlp", "recurrent")
"""Kinds that have no convolutions (`live.models.family`), so that no choice about images concerns them."""


def advice(profile: Profile, here: Fingerprint, terms: Terms) -> Advice:
    """Return the values to put into models under these terms; an empty Advice where there are none."""
    for_any = puts_families(terms)
    programs = _programs(profile, here, terms)
    return Advice(
        device="cuda" if profile.fingerprint.gpu else "cpu",
        general=_values(profile.settings, profile.fingerprint, here, terms) if for_any else {},
        families=_families(profile, here, terms) if for_any else {},
        programs=programs,
        loading=_loading(profile, here, terms),
        quiet=terms.quiet,
        profile=terms.profile if programs else "",
    )


def puts_families(terms: Terms) -> bool:
    return terms.inject or terms.numerics == "mixed"


def waiting(profile: Profile, here: Fingerprint, terms: Terms) -> dict[str, Values]:
    """By kind of network, what `--numerics mixed` would put in for a user who has not decided about it."""
    if puts_families(terms) or terms.numerics is not None:
        return {}
    found = _families(profile, here, terms.but(numerics="mixed"))
    return {family: values for family, values in found.items() if values}


def _families(profile: Profile, here: Fingerprint, terms: Terms) -> dict[str, Values]:
    """A setting that was not measured for a kind has its general choice, as in a `Tuning`, where it concerns the kind.
    Kinds for which nothing gains are there too.
    """
    found: dict[str, Values] = {}
    for family, choices in profile.families.items():
        general = dict(profile.settings)
        if family in WITHOUT_IMAGES:
            general.pop("channels_last", None)
        if family in FAMILIES:
            found[family] = _values({**general, **choices}, profile.fingerprint, here, terms)
    return found


def _values(choices: Mapping[str, Choice], there: Fingerprint, here: Fingerprint, terms: Terms) -> Values:
    return {
        name: choice.value
        for name, choice in choices.items()
        if name in knobs.in_models() and _fits(name, choice.value, there, here, terms)
    }


def _fits(name: str, value: Value, there: Fingerprint, here: Fingerprint, terms: Terms) -> bool:
    setting = knobs.load(name)
    return (
        not knobs.is_default(setting, value)
        and terms.asks_for(name)
        and not knobs.is_beyond(setting, value, terms.numerics or DEFAULT_LEVEL)
        and (terms.ignore_fingerprint or not there.differences(here, setting.DEPENDS))
    )


def _programs(profile: Profile, here: Fingerprint, terms: Terms) -> tuple[TunedProgram, ...]:
    """Return the tuned programs, the newest first, since the payload may not hold all. Those of which nothing may be
    put in are there where others' choices would be put in instead: torch's defaults were measured to be best for them.
    """
    newest = sorted(profile.programs, key=lambda one: one.created, reverse=True)
    tuned = [_tuned(profile, program, here, terms) for program in newest]
    return tuple(one for one in tuned if one.settings or one.loading or puts_families(terms))


def _tuned(profile: Profile, program: Program, here: Fingerprint, terms: Terms) -> TunedProgram:
    level = _mixed(terms)
    there, chosen = program.fingerprint, best(program, terms.numerics)
    values = {name: value for name, value in chosen.items() if _fits(name, value, there, here, level)}
    choices = {name: value for name, value in values.items() if name in LOADERS}
    put_in = {
        name: value for name, value in values.items() if name in knobs.in_models() or hasattr(knobs.load(name), "apply")
    }
    measured = {"cpu_budget": there.cpu_budget, "own_dataset": True}
    return TunedProgram(
        entry=program.entry,
        models=tuple(model.identity for model in program.models),
        settings={**_set_back(profile, program, here, terms), **put_in},
        shapes=program.input_shapes,
        world_size=program.world_size,
        trains=program.trains,
        unguarded=bool(values) and program.guard is not None and program.guard.verdict in ("off", "unknown"),
        loading=_load(choices, measured, terms) if choices.get(WORKERS) else None,
        dataset=program.dataset,
        layers=tuple(model.layers for model in program.models) if any(one.layers for one in program.models) else (),
        torch=None if terms.ignore_fingerprint or not _depends_on_torch(values) else there.torch,
    )


def _depends_on_torch(names: Iterable[str]) -> bool:
    return any("torch" in knobs.load(name).DEPENDS for name in names)


def _mixed(terms: Terms) -> Terms:
    """Without a level all that was tuned may be put in."""
    return terms.but(numerics=terms.numerics or "mixed")


def _set_back(profile: Profile, program: Program, here: Fingerprint, terms: Terms) -> Values:
    """Torch's defaults of the flags that the profile sets for every program, where this one was tuned with and without
    them, and its combination lacks them or the guard refused them.
    """
    whole = {name: choice.value for name, choice in program.settings.items()}
    refused = program.guard is not None and program.guard.verdict == "refused"
    goes_in = best(program, terms.numerics) == whole and all(
        knobs.is_default(knobs.load(name), value) or _fits(name, value, program.fingerprint, here, _mixed(terms))
        for name, value in whole.items()
    )
    if terms.only or not goes_in or not (whole or refused):
        return {}
    tried = {name for row in program.measurements for name in row.params}
    flags = {name: knobs.load(name).DEFAULT for name in profile.settings if name in tried}
    return {
        name: default
        for name, default in flags.items()
        if knobs.load(name).PHASE == "process"
        and default != (value := profile.settings[name].value)
        and _fits(name, value, profile.fingerprint, here, terms)
        and _fits(name, value, program.fingerprint, here, terms)
    }


def beyond(profile: Profile, here: Fingerprint, terms: Terms) -> tuple[str, ...]:
    """The settings of tuned programs that the limit on numerics leaves out: those beyond it, and those of which nothing
    is known without these.
    """
    found = [
        name
        for program in profile.programs
        for name, value in best(program, None).items()
        if best(program, terms.numerics).get(name) != value
        and _fits(name, value, program.fingerprint, here, terms.but(numerics="mixed"))
    ]
    return tuple(dict.fromkeys(found))


def elsewhere(profile: Profile, here: Fingerprint, terms: Terms) -> dict[str, tuple[str, ...]]:
    """By program that was tuned on another machine, how that differs in what its settings depend on."""
    found = {program.entry: _differences(program, here, terms) for program in profile.programs}
    return {entry: differences for entry, differences in found.items() if differences}


def _differences(program: Program, here: Fingerprint, terms: Terms) -> tuple[str, ...]:
    if terms.ignore_fingerprint:
        return ()
    fields = dict.fromkeys(field for name in program.settings for field in knobs.load(name).DEPENDS)
    return tuple(program.fingerprint.differences(here, list(fields)))


def best(program: Program, limit: Numerics | None) -> Mapping[str, Value]:
    """The best combination within the limit: that of the highest level up to it for which there is one."""
    if limit is None:
        return {name: choice.value for name, choice in program.settings.items()}
    allowed = [level for level in LEVELS[: LEVELS.index(limit) + 1] if level in program.by_numerics]
    return program.by_numerics[allowed[-1]] if allowed else {}


def _loading(profile: Profile, here: Fingerprint, terms: Terms) -> Loading | None:
    choices = {
        name: choice.value
        for name, choice in profile.settings.items()
        if name in LOADERS and _fits(name, choice.value, profile.fingerprint, here, terms)
    }
    if not terms.inject_dataloader or not choices.get(WORKERS):
        return None
    return _load(choices, asdict(measured_loading(profile)), terms)


def _load(choices: Values, measured: Mapping[str, Any], terms: Terms) -> Loading:
    return Loading(choices=choices, measured=measured, deterministic=terms.numerics == "exact")


def measured_loading(profile: Profile) -> MeasuredLoading:
    """The measurements with which `Tuning.dataloader_kwargs` adapts choices to another process and dataset."""
    own = [row for row in profile.measurements if row.bench == "dataset"]
    general = profile.settings[WORKERS].value if WORKERS in profile.settings else None
    cpus = profile.fingerprint.cpu_budget
    # With a training step to feed, or so many workers that they must have waited, more CPUs would not help.
    fed = any("step_ms" in row.params for row in own) or (isinstance(general, int) and cpus and general > 2 * cpus)
    return MeasuredLoading(
        cpu_budget=cpus,
        workers_by_kind={
            kind: value
            for kind in SAMPLES
            if isinstance(value := getattr(profile.families.get(kind, {}).get(WORKERS), "value", None), int)
        },
        own_dataset=bench_of(profile.measurements) == "dataset",
        cpus_bound=not fed,
        batch_bytes=int(max((max(row.samples) for row in own if row.metric == "batch_bytes"), default=0)),
    )
