"""The line of a process whose models are almost those of a tuned program: what differs, and what to do about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from .advice import TunedProgram
from .models import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    identity: Identity
    layers: Mapping[str, int]
    """As `models.layers_of`; empty where that is not known."""


def line(
    profile: str, programs: Sequence[TunedProgram], models: Sequence[Model], *, trains: bool, entry: str
) -> str | None:
    """The line about the program that is most like this process's, of the same name or with a similar model; None where
    no program is like it.
    """
    profile = profile or "the profile"
    found = [(one.entry != entry, *_unlike(one, models)) for one in programs]
    named, distance, what = min(found, default=(True, inf, ""))
    if named and distance == inf:
        return None
    if not distance:
        how = "training" if not trains else "calls without gradients"
        return f"{profile} has a program tuned for {how} of this model ({what}), which is not what this program does"
    return f"{profile} has a program tuned for another model ({what}); tune this one: gputune tune -- CMD"


def _unlike(program: TunedProgram, models: Sequence[Model]) -> tuple[float, str]:
    """How many layers of a program's models differ from these, and a text with the models' names; 0 if they are these
    models, infinity where no model is like any of them.
    """
    layers = program.layers or ({},) * len(program.models)
    tuned = [Model(identity=one, layers=own) for one, own in zip(program.models, layers, strict=False)]
    nearest = [min((_difference(one, other) for other in models), default=(inf, one.identity[0])) for one in tuned]
    near = [one for one in nearest if one[0] < inf]
    if not near:
        return inf, ", ".join(dict.fromkeys(one.identity[0] for one in tuned))
    others = [what if distance < inf else f"{what}: not here" for distance, what in nearest if distance]
    distance = sum(distance if distance < inf else 1 for distance, _ in nearest)
    return distance, ", ".join(dict.fromkeys(others or [what for _, what in nearest]))


def _difference(tuned: Model, other: Model) -> tuple[float, str]:
    name, name_here = tuned.identity[0], other.identity[0]
    if tuned.identity == other.identity:
        return 0, name
    names = name if name == name_here else f"{name}, and this is {name_here}"
    if not tuned.layers or not other.layers:
        return (1, names) if name == name_here else (inf, name)
    kinds = tuned.layers.keys() | other.layers.keys()
    changes = [other.layers.get(one, 0) - tuned.layers.get(one, 0) for one in kinds]
    count = max(sum(one for one in changes if one > 0), -sum(one for one in changes if one < 0))
    if name != name_here and 2 * count >= max(sum(tuned.layers.values()), sum(other.layers.values())):
        return inf, name
    if not count:
        return 0.5, f"{names}: its layers have other names"
    return count, f"{names}: {count} layer{' differs' if count == 1 else 's differ'}"
