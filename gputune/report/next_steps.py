"""What to type next, chosen by what a profile says of its machine."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from gputune import knobs
from gputune.advice import Choice
from gputune.knobs import load, names
from gputune.probing.plan import ALL
from gputune.probing.recommending import provisional
from gputune.profile import Profile, Program
from gputune.report.answer_parts import PLACEHOLDER, By, Gain, Next, Step
from gputune.report.programs import is_provisional, seeming
from gputune.report.severities import merged

TRAIN = ("python", "train.py")
USUAL, HERE = "profile.yaml", "this-machine.yaml"
"""The file that `probe` and `tune` write where none is named, and one beside it."""
OF_DATASET = ("--dataset", "--batch-size", "--step-ms")
MOSTLY = 0.5
"""The share of the settings from which on those that were not measured come before all that was."""


def elsewhere(profile: Profile, path: str, gains: Sequence[Gain]) -> Iterator[Next]:
    """On another machine than the profile's: nothing that repairs, or measures again into that file."""
    beside = ("-o", HERE) if PurePath(path).name == USUAL else ()
    yield Next(step=Step.HERE, words=("gputune", "probe", *beside))
    programs = list(_programs(profile, path))
    yield from (*programs, *_tunes(profile, path))
    yield from _others(profile, path, gains, tuned=bool(programs))


def next_steps(
    profile: Profile, path: str, gains: Sequence[Gain], again: Sequence[str] | None, failed: Sequence[str]
) -> Iterator[Next]:
    """The most urgent first. `again` measures again what is provisional, if the options of its probe are known;
    `failed` are benches without a result.
    """
    again = again or command(profile, _as_before(profile, path), completes=True)
    errors = merged([one for one in profile.findings if one.severity == "ERROR"])
    if errors:
        _, _, remedy = errors[0]
        if remedy and remedy.strip():  # of a file, any text may be one
            yield Next(step=Step.REPAIR, words=(remedy,))
        yield Next(step=Step.LOOK, words=("gputune", "check"))
    programs, tunes = list(_programs(profile, path)), list(_tunes(profile, path))
    yield from (*programs, *tunes)
    if again:
        yield Next(step=Step.AGAIN, words=tuple(again))
    elif mostly_unmeasured(profile):
        step = Step.MEASURE_OTHERS if programs or tunes else Step.MEASURE
        yield Next(step=step, words=_probe(_as_before(profile, path)))
    elif failed:
        yield Next(step=Step.RETRY, words=_probe({"--only": ",".join(failed), **_as_before(profile, path)}))
    others = list(_others(profile, path, gains, tuned=bool(programs)))
    yield from others
    if not (errors or again or tunes or mostly_unmeasured(profile)):
        found = programs or others or any(one.by in (By.LOADER, By.LOADER_LINES) for one in gains)
        yield Next(step=Step.TUNE if found else Step.TUNE_ANYWAY, words=("gputune", "tune", "--", *TRAIN))


def mostly_unmeasured(profile: Profile) -> bool:
    known = [choice for name, choice in profile.settings.items() if name in names()]
    told = [one for one in known if one.unmeasured or one.evidence]  # those that a measurement tells, or would tell
    return sum(choice.unmeasured for choice in known) > MOSTLY * len(told)


def _others(profile: Profile, path: str, gains: Sequence[Gain], *, tuned: bool) -> Iterator[Next]:
    if puts_into_models(profile, gains):
        yield Next(step=Step.MIXED, words=("gputune", "apply", "--numerics", "mixed", path, "--", *TRAIN))
    elif not tuned and sets_flags(profile):
        yield Next(step=Step.APPLY, words=("gputune", "apply", path, "--", *TRAIN))
    elif not tuned and any(one.by is By.LOADER for one in gains):
        yield Next(step=Step.LOADER, words=("gputune", "apply", "--inject-dataloader", path, "--", *TRAIN))


def _programs(profile: Profile, path: str) -> Iterator[Next]:
    for start in dict.fromkeys(_start(one) for one in profile.programs if one.settings):
        yield Next(step=Step.PROGRAM, words=("gputune", "apply", path, "--", *start))


def _tunes(profile: Profile, path: str) -> Iterator[Next]:
    """The commands that tune again the programs of which nothing was certain."""
    open_ = [one for one in profile.programs if seeming(one) or is_provisional(one)]
    beside = () if path in (USUAL, PLACEHOLDER) else ("-o", path)
    for start in dict.fromkeys(map(_start, open_)):
        yield Next(step=Step.TUNE_AGAIN, words=("gputune", "tune", *beside, "--", *start))


def _start(program: Program) -> tuple[str, ...]:
    script = f"./{program.entry}" if program.entry.startswith("-") else program.entry
    entry = (script,) if script.endswith(".py") else ("-m", program.entry)
    if program.world_size == 1:
        return ("python", *entry)
    return ("torchrun", "--nproc-per-node", str(program.world_size), *entry)


def sets_flags(profile: Profile) -> bool:
    """Whether `gputune apply` alone does anything."""
    return any(
        load(name).PHASE != "code" and is_away(name, choice)
        for name, choice in profile.settings.items()
        if name in names()
    )


def puts_into_models(profile: Profile, gains: Sequence[Gain]) -> bool:
    """Whether `--numerics mixed` adds something: to a kind of network that gains by it, or to any model."""
    if any(one.kind == "network" for one in gains):
        return any(one.by in (By.MIXED, By.SCRIPT, By.UNKNOWN, By.UNCERTAIN) for one in gains)
    return any(name in knobs.in_models() and is_away(name, choice) for name, choice in profile.settings.items())


def is_away(name: str, choice: Choice) -> bool:
    """Whether a choice is another value than torch's default. Of dimensions, a multiple of 1 asks for nothing."""
    setting = load(name)
    if isinstance(choice.value, dict):
        return any(multiple != 1 for multiple in choice.value.values())
    return not knobs.is_default(setting, choice.value) and choice.value != setting.DEFAULT


def _as_before(profile: Profile, path: str) -> dict[str, object]:
    devices = list(dict.fromkeys(row.device for row in profile.measurements))
    device = (devices or ["cuda:0" if profile.fingerprint.gpu else "cpu"])[0] if len(devices) < 2 else ALL
    return {"--device": device != "cuda:0" and device, "-o": path not in (USUAL, PLACEHOLDER) and path}


def command(profile: Profile, given: Mapping[str, object], *, completes: bool) -> tuple[str, ...] | None:
    """The one command that measures again what the provisional choices rest on; None where nothing is provisional.

    `given` has the probe's options with their values; what is off or not given is None, False or empty. Where the
    probe `completes` the file that it replaces, only the benches that are waited for are named.
    """
    waiting = provisional(profile.settings, profile.families)
    if not waiting:
        return None
    options = {name: value for name, value in given.items() if value}
    if completes and options.get("--device") != ALL:  # a probe of all GPUs keeps nothing of the file
        benches = list(dict.fromkeys(bench for found in waiting.values() for bench in found))
        left_out = ("--only", "--shapes", *(() if "dataset" in benches else OF_DATASET))
        options = {
            "--only": ",".join(benches),
            **({"--dataset": "FILE.py:CALLABLE"} if "dataset" in benches else {}),
            **{name: value for name, value in options.items() if name not in left_out},
        }
    return _probe(options)


def _probe(options: Mapping[str, object]) -> tuple[str, ...]:
    given = {name: value for name, value in options.items() if value}
    words = [part for name, value in given.items() for part in ([name] if value is True else [name, str(value)])]
    return ("gputune", "probe", *words)
