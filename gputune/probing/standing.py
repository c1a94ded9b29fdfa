"""What becomes of the choice that a probe's rows lead to: whether it is believed, whether what an earlier probe chose
still stands, and which benches run again.

**What it rests on**: a choice with an interval rests on the speed that its benches (`evidence`) measured. A choice
without one is decided by something else: the machine's facts, the accuracy guard, memory. It is believed as it is, and
nothing stands against it.

**Disturbed** is a bench of the host, or of a CPU, unless it had all CPUs of this process for itself: threads that share
work wait for the one whose CPU is taken. A bench of a GPU needs two, for the thread that launches kernels and the one
of the backward pass, and the GPU for itself, not slowed down by heat. What rests on a disturbed bench is torch's
default, and provisional: its benches run again. A gain of twice and more is believed on a GPU, where the disturbance
falls on both sides alike, and for a setting that says so (`BELIEVED_FROM`), where the median is also more than a larger
share of the CPUs would bring.

**What stands** is what an earlier probe of this machine, with the same fingerprint and version of gputune, measured
undisturbed. Without this, values that lie close together would be recommended now this way and now that. It falls where
this run's choice is certainly more than 3 % faster. Torch's default counts as `WORTH` / 1.03 times as fast as it is,
since leaving it has to be worth so much.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gputune import advice, benches, knobs
from gputune.advice import Choice
from gputune.advice._evidence import never, range_text
from gputune.checks.throttling import FAULTS
from gputune.facts import Facts
from gputune.facts.busy import is_busy
from gputune.knobs import Value, value_text
from gputune.measurement import BY_FAR, LEAST_GAIN, Comparison, Measurement
from gputune.profile.document import Fingerprint, Profile
from gputune.version import __version__

GENERAL = ""
"""The family of choices that hold for all."""
MANY_CPUS = 8
SHARE_MARGIN = 1.25
SM_PERCENT = 5
"""The share of a GPU that another process may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    value: Value
    since: str


Standing = Mapping[str, Mapping[str, Incumbent]]
"""By family and setting."""
NOTHING_STANDS: Standing = {}


def standing_of(earlier: Profile, here: Fingerprint) -> Standing:
    """The measured choices of `earlier`; none if it is of another machine than `here`, or of another version."""
    if earlier.fingerprint != here or earlier.gputune != __version__:
        return NOTHING_STANDS
    return {
        family: {
            name: Incumbent(value=choice.value, since=choice.since or earlier.created)
            for name, choice in group.items()
            if (choice.evidence or choice.since) and not choice.unmeasured and not choice.provisional
        }
        for family, group in ({GENERAL: earlier.settings} | earlier.families).items()
    }


def provisional(
    settings: Mapping[str, Choice], families: Mapping[str, Mapping[str, Choice]]
) -> dict[str, tuple[str, ...]]:
    """The settings whose choice is provisional, in general or for a family, and the benches that it waits for."""
    waiting: dict[str, Iterable[str]] = {}
    for group in (settings, *families.values()):
        for name, choice in group.items():
            if choice.provisional:
                waiting[name] = dict.fromkeys((*waiting.get(name, ()), *choice.evidence))
    return {name: tuple(found) for name, found in waiting.items()}


def disturbance(facts: Facts, measurements: Sequence[Measurement], bench: str) -> str | None:
    rows = [row for row in measurements if row.bench == bench]
    on_gpu = _on_gpu(measurements, bench)

    def most(condition: str) -> float:
        return max((row.conditions[condition] for row in rows if condition in row.conditions), default=0.0)

    if is_busy(facts.cpu, most("other_cpus"), on_gpu=on_gpu):
        stolen = f", {most('stolen_cpus'):.2g} of them on other guests of the host" if most("stolen_cpus") else ""
        return f"others used {most('other_cpus'):.2g} of {facts.cpu.affinity_count} CPUs{stolen}"
    if not on_gpu:
        return None
    if most("other_sm_percent") >= SM_PERCENT:
        return f"another process used {most('other_sm_percent'):.0f} % of the GPU"
    bits = [int(row.conditions.get("throttle_reasons", 0)) for row in rows]
    faults = [name for bit, (name, _) in FAULTS.items() if any(bit & one for one in bits)]
    return f"the GPU was slowed down by {', '.join(faults)}" if faults else None


def _on_gpu(measurements: Sequence[Measurement], bench: str) -> bool:
    of_the_host = bench in benches.names() and benches.traits(benches.load(bench)).of_the_host
    return not of_the_host and any(row.bench == bench and row.device.startswith("cuda") for row in measurements)


def final(
    facts: Facts,
    measurements: Sequence[Measurement],
    choice: Choice,
    incumbent: Incumbent | None,
    place: tuple[str, str],
) -> Choice:
    """What becomes of this run's choice for a setting and family (`place`), beside the incumbent."""
    why = _why_not_trusted(facts, measurements, place[0], choice)
    if incumbent is None or not (choice.evidence or choice.unmeasured):
        return _distrusted(facts, place[0], choice, why) if why else choice
    speeds = _Speeds(facts, measurements, place, choice)
    if choice.unmeasured and speeds.refuses(incumbent.value):
        return choice
    told = not (choice.unmeasured or choice.provisional or why)
    differs = told and choice.value != incumbent.value
    if differs and (_is_decided_otherwise(choice) or speeds.certain_gain(choice.value, incumbent.value)):
        return choice
    return _kept(choice, incumbent, why, speeds)


def _kept(choice: Choice, incumbent: Incumbent, why: str, speeds: "_Speeds") -> Choice:
    """The incumbent with its gain in this run, and a reason that speaks of it; `why` this run is not trusted."""
    if choice.value == incumbent.value:
        gain, interval, said = choice.gain, choice.interval, choice.reason
    else:
        value, speed = speeds.beside_default(incumbent.value)
        gain, interval = (speed.ratio, speed.interval) if speed else (None, None)
        said = speeds.words(value, speed) if speed else ""
    if choice.unmeasured:
        how = [choice.reason] if said != choice.reason else []
    elif why or choice.provisional:
        how = [f"this run is not trusted{f', since {why}' if why else ''}"]
    elif choice.value != incumbent.value:
        how = ["this run does not contradict it with certainty"]
        said = said or f"{value_text(incumbent.value)} was not measured in it"
    else:
        how = []
    return replace(
        choice,
        value=incumbent.value,
        gain=gain,
        interval=interval,
        since=incumbent.since,
        unmeasured=False,
        provisional=False,
        reason=f"stands since {incumbent.since[:10]}: {'; '.join(filter(None, [*how, said]))}",
    )


def _is_decided_otherwise(choice: Choice) -> bool:
    """Whether something else than speed decided, or the user's own code, which need not be what it was."""
    return choice.interval is None or any(benches.traits(benches.load(name)).user_code for name in choice.evidence)


class _Speeds:
    """The speed of a setting's values over torch's default, as far as this run's rows, and its choice, tell."""

    def __init__(
        self, facts: Facts, measurements: Sequence[Measurement], place: tuple[str, str], choice: Choice
    ) -> None:
        name, family = place
        self._rows, self._family, self._choice = (facts, measurements), family, choice
        self._default, self._advice = advice.recommend(name, facts, ()).value, advice.of(name)
        self._has_gains, self._torchs = hasattr(self._advice, "gain_of"), knobs.load(name).DEFAULT

    def beside_default(self, value: Value) -> tuple[Value, Comparison | None]:
        """The value whose speed over torch's default a choice of `value` is shown with, and that speed: its own, or
        for torch's default that of this run's choice.
        """
        if not self._has_gains or value == self._torchs:
            choice = self._choice
            low, high = choice.interval or (0.0, 0.0)
            known = choice.gain and choice.interval
            speed = Comparison(ratio=choice.gain or 0.0, low=low, high=high, pairs=1) if known else None
            return (choice.value if value == self._torchs else value), speed
        parts = [{key: one} for key, one in value.items()] if isinstance(value, dict) else [value]
        speeds = [speed for part in parts if (speed := self._gain_of(part)) and speed.pairs]
        return value, max(speeds, key=lambda speed: speed.ratio, default=None)

    def words(self, value: Value, speed: Comparison) -> str:
        most = "up to " if isinstance(value, dict) else ""
        base = value_text(self._torchs) if isinstance(self._torchs, bool) else "without"
        return f"{value_text(value)} ran {most}{range_text(speed)} as fast as {base}"

    def refuses(self, value: Value) -> bool:
        """Whether something else than speed speaks against a value, as nothing does against torch's default."""
        return self._has_gains and value != self._default and self._gain_of(value) == never()

    def certain_gain(self, value: Value, other: Value) -> bool:
        """Whether a value is certainly more than 3 % faster than another one."""
        new, old = self._interval(value), self._interval(other)
        return new is not None and old is not None and new[0] > LEAST_GAIN * old[1]

    def _interval(self, value: Value) -> tuple[float, float] | None:
        if value == self._default:
            return (getattr(self._advice, "WORTH", LEAST_GAIN) / LEAST_GAIN,) * 2
        if not self._has_gains:
            return self._choice.interval  # with two values, the choice is about the other one
        speed = self._gain_of(value)
        return speed.interval if speed else None

    def _gain_of(self, value: Value) -> Comparison | None:
        gain: Comparison | None = self._advice.gain_of(*self._rows, value, self._family)
        return gain


def _why_not_trusted(facts: Facts, measurements: Sequence[Measurement], name: str, choice: Choice) -> str:
    """What disturbed a bench that the choice rests on; empty if nothing did, or if it lies far apart all the same."""
    if choice.interval is None or choice.provisional or choice.unmeasured:
        return ""
    causes = ((bench, disturbance(facts, measurements, bench)) for bench in choice.evidence)
    bench, why = next(((bench, why) for bench, why in causes if why), ("", None))
    if why is None or _lies_far_apart(facts, measurements, name, choice, bench):
        return ""
    return f"{why} while {bench} measured"


def _distrusted(facts: Facts, name: str, choice: Choice, why: str) -> Choice:
    """Torch's default instead of the choice, or the number of threads that a limit asks for; provisional."""
    instead = advice.recommend(name, facts, ())
    is_limit = instead.value != knobs.load(name).DEFAULT
    limit = f"; a limit asks for {value_text(instead.value)}" if is_limit else ""
    reason = f"not trusted, since {why}: {choice.reason}{limit}"
    return replace(choice, value=instead.value, reason=reason, provisional=True)


def _lies_far_apart(facts: Facts, measurements: Sequence[Measurement], name: str, choice: Choice, bench: str) -> bool:
    on_gpu = _on_gpu(measurements, bench)
    believed_from = BY_FAR if on_gpu else getattr(advice.of(name), "BELIEVED_FROM", None)
    if believed_from is None or choice.interval is None or not choice.gain:
        return False
    low, high = choice.interval
    if believed_from > low and high > 1 / believed_from:
        return False
    return on_gpu or max(choice.gain, 1 / choice.gain) >= _by_a_larger_share(facts, measurements, bench, believed_from)


def _by_a_larger_share(facts: Facts, measurements: Sequence[Measurement], bench: str, believed_from: float) -> float:
    """The gain that a larger share of the CPUs may bring: who has more processes gets more of what is contested."""
    seen = [row.conditions.get("other_cpus", 0.0) for row in measurements if row.bench == bench]
    left = max(0.0, 1 - max(seen, default=0.0) / facts.cpu.affinity_count)
    if not left:
        return math.inf
    return (SHARE_MARGIN if facts.cpu.budget >= MANY_CPUS else believed_from) / left
