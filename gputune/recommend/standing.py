"""Keeps the choices of an earlier probe of the same machine, unless the rows of the new probe contradict them with
certainty. Without this, values that lie close together would be recommended now this way and now that. A choice that is
kept is said to stand.

**The rule**: a choice that stands is dropped ("falls") where another value certainly gains over it, by more than 3 %,
or by what a setting with a higher bar (`WORTH`) asks for; and where something other than speed decides, such as the
accuracy guard. What an earlier probe did not measure, or only on a disturbed machine, does not stand. Nothing stands
where any field of the fingerprint (GPU, driver, torch, number of CPUs, ...) or gputune's version differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gputune import benches
from gputune.facts import Facts
from gputune.measurement import LEAST_GAIN, Comparison, Measurement
from gputune.profile.document import Fingerprint, Profile
from gputune.settings import Choice, Value, load
from gputune.settings._evidence import never
from gputune.version import __version__

GENERAL = ""
"""The family of choices that hold for all."""
Interval = tuple[float, float]
Place = tuple[str, str]
"""A setting, and a family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """A value, and since when it stands (UTC, ISO 8601)."""

    value: Value
    since: str


Standing = Mapping[str, Mapping[str, Stood]]
"""By family and setting."""
NOTHING_STANDS: Standing = {}


def standing_of(earlier: Profile, here: Fingerprint) -> Standing:
    """Return, by family and setting, the choices of `earlier` that were measured and are not provisional: a new probe
    keeps them unless its rows contradict them. There are none where the fingerprint of `earlier` is not `here`, or
    another version of gputune wrote it.
    """
    if earlier.fingerprint != here or earlier.gputune != __version__:
        return NOTHING_STANDS
    return {
        family: {
            name: Stood(value=choice.value, since=choice.since or earlier.created)
            for name, choice in group.items()
            if (choice.evidence or choice.since) and not choice.unmeasured and not choice.provisional
        }
        for family, group in ({GENERAL: earlier.settings} | earlier.families).items()
    }


def recorded(profile: Profile) -> Standing:
    """Return the earlier choices (those with `since`) that a profile says it has kept. Recommending anew from the
    profile's facts and measurements, with these, gives the same profile again.
    """
    return {
        family: {name: Stood(value=choice.value, since=choice.since) for name, choice in group.items() if choice.since}
        for family, group in ({GENERAL: profile.settings} | profile.families).items()
    }


def kept(
    facts: Facts, measurements: Sequence[Measurement], choice: Choice, stood: Stood | None, place: Place
) -> Choice:
    """The choice that this run alone leads to, or what stood before."""
    if stood is None or _is_decided_by_facts(choice):
        return choice
    if choice.unmeasured and _speed(facts, measurements, stood.value, place) == never():
        return choice
    agrees = choice.value == stood.value and not choice.provisional
    decided = not choice.unmeasured and not choice.provisional
    if decided and not agrees and _falls(facts, measurements, choice, stood.value, place):
        return choice
    contradicts = "" if agrees or choice.unmeasured else ", and this run does not contradict it with certainty"
    return replace(
        choice if agrees else _about(facts, measurements, choice, stood.value, place),
        value=stood.value,
        since=stood.since,
        unmeasured=False,
        provisional=False,
        reason=f"stands since {stood.since[:10]}{contradicts}: {choice.reason}",
    )


def _is_decided_by_facts(choice: Choice) -> bool:
    return not choice.evidence and not choice.unmeasured


def _speed(facts: Facts, measurements: Sequence[Measurement], value: Value, place: Place) -> Comparison | None:
    """A value's speed over torch's default; None where this run, or the setting, cannot tell."""
    gain_of = getattr(load(place[0]), "gain_of", None)
    return gain_of(facts, measurements, value, place[1]) if gain_of else None


def _about(facts: Facts, measurements: Sequence[Measurement], choice: Choice, value: Value, place: Place) -> Choice:
    """The choice with the gain that belongs to another value; torch's default has that of its rival."""
    setting = load(place[0])
    if not hasattr(setting, "gain_of") or value == setting.recommend(facts, ()).value:
        return choice
    speed = _speed(facts, measurements, value, place)
    gain, interval = (speed.ratio, speed.interval) if speed and speed != never() else (None, None)
    return replace(choice, gain=gain, interval=interval)


def _falls(facts: Facts, measurements: Sequence[Measurement], choice: Choice, stood: Value, place: Place) -> bool:
    """Whether what stood must give way to the choice of this run."""
    if choice.interval is None or any(benches.traits(benches.load(bench)).user_code for bench in choice.evidence):
        return True  # decided by something else than speed, or on the user's own code
    setting = load(place[0])
    default, worth = setting.recommend(facts, ()).value, getattr(setting, "WORTH", LEAST_GAIN)

    def gain(value: Value) -> Interval | None:
        return (1.0, 1.0) if value == default else _gain(facts, measurements, choice, value, place)

    new, old = gain(choice.value), gain(stood)
    if new is None or old is None:
        return False
    if stood == default:
        return new[0] > worth
    if choice.value == default:  # it falls as far below its bar as 1 / LEAST_GAIN lies below LEAST_GAIN
        return old[1] < worth / LEAST_GAIN**2
    return new[0] > LEAST_GAIN * old[1]


def _gain(
    facts: Facts, measurements: Sequence[Measurement], choice: Choice, value: Value, place: Place
) -> Interval | None:
    """The interval of a value's speed over torch's default; None where this run does not know it."""
    if not hasattr(load(place[0]), "gain_of"):
        return choice.interval  # with two values, the choice is about the other one
    speed = _speed(facts, measurements, value, place)
    return speed.interval if speed else None
