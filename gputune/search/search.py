"""Which combination of settings runs a program's steps fastest: what is tried, in which order, and for how long. Pure:
time and samples come in.

Settings are combined greedily, each stage on the best of the one before: precisions in both memory formats; the
optimizer's form and the libraries' own choices; with these once more the precisions that were about as fast as the
best, since what limited them all may be gone, and those that too few rounds put behind; compiling what leaves the GPU
the least to do, and mixed precision with TF32 beside it, which is done once, and therefore compared until decided. A
stage is a comparison in rounds that drops what is far behind. The last comparison, of torch's defaults, of what is left
of the winner within each lower effect on results, of what was about as fast as the winner with a lower effect, and of
the winner itself, goes on until it is decided.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gputune.knobs import LEVELS, Value, load
from gputune.measurement import FEWEST_PAIRS, LOOKS, MORE_LOOKS
from gputune.search import choice
from gputune.search.budget import STEPS, Budget
from gputune.search.choice import Block, Tried
from gputune.search.combination import DEFAULT, Combination, of_stage, with_what_comes_before
from gputune.search.rounds import Rounds, ranked

Candidates = Mapping[str, Value]


def precisions(start: Combination, candidates: Candidates) -> list[Combination]:
    """Every selection of the candidates of stage `precision`, each with what it is tried on top of."""
    names = of_stage("precision", candidates)
    selections = ([name for place, name in enumerate(names) if bits >> place & 1] for bits in range(1, 1 << len(names)))
    return list(dict.fromkeys(start.with_all(_together(selection, candidates)) for selection in selections))


def options(best: Combination, candidates: Candidates) -> list[Combination]:
    """Each candidate of stage `options`, with what it is tried on top of."""
    return [best.with_all(_together([name], candidates)) for name in of_stage("options", candidates)]


def to_compile(light: Combination, candidates: Candidates) -> list[Combination]:
    """The combinations of which the first one is compiled that is not known to fail: in mixed precision with TF32
    beside it, whatever that was worth uncompiled. A compiled program may call kernels of FP32 where the same one
    uncompiled calls none; kernels of bfloat16 are the same with TF32 as without.
    """
    names = of_stage("precision", candidates) if light.level == "mixed" else []
    with_tf32 = light.with_all({name: candidates[name] for name in names if load(name).NUMERICS == "tf32"})
    return list(dict.fromkeys([with_tf32, light]))


def _together(names: Sequence[str], candidates: Candidates) -> dict[str, Value]:
    return {name: candidates[name] for name in with_what_comes_before(names, candidates)}


FIRST_LOOK = 4
"""The rounds after which a stage drops what is far behind."""
STAGE_ROUNDS = 8
ENDS = {"precision": 0.3, "options": 0.42, "again": 0.54, "compile": 0.66, "final": 1.0}
"""By stage, the share of the search by which its last round is to end."""
LOADING = "loading"
"""The stage of numbers of workers, which is no part of the search."""
OPEN = 0.2
"""The share of the search in which what no stage took is compared to the end, if that tells. With more, a program in
which nothing gains is tuned as long as others."""


@dataclass(kw_only=True)
class Search:
    """The search for one program. `measure` runs a block and may raise."""

    measure: Callable[[Combination], Block]
    used: Callable[[], float]
    """The share of the steps and of the time for the search that is used up."""
    is_left_out: Callable[[Combination], bool] = lambda one: False
    start: Combination = DEFAULT
    """The combination that all others begin with: torch's defaults, or a number of workers with which steps need not
    wait for data."""
    was_calm: Callable[[], bool] = lambda: True
    """Whether nothing disturbed the steps since the last call."""
    is_disturbed: bool = False
    """Whether the result is told by disturbed rounds too, since the calm ones left it open."""
    tried: list[Tried] = field(default_factory=list)
    _disturbed: set[str] = field(default_factory=set)
    """The stages that are told by disturbed rounds, for want of calm ones."""

    def best(self, candidates: Candidates) -> Combination:
        precise = self._stage("precision", self.start, precisions(self.start, candidates))
        chosen = self._stage("options", precise, options(precise, candidates))
        added, best = chosen.beyond(precise), chosen
        near, disturbed = self._about_as_fast("precision"), self._perhaps_disturbed("precision")
        if added.items or disturbed:
            others = [arm.combination.with_all(added.values) for arm in (*near, *disturbed)]
            best = self._stage("again", best, others)
        if compiling := {name: candidates[name] for name in of_stage("compile", candidates)}:
            light_options = self._options_with_least_work(chosen).beyond(precise)
            light = self._precision_with_least_work(best).beyond(added).with_all(light_options.values)
            able = self._usable(to_compile(light, candidates))[:1]
            best = self._stage("compile", best, [one.with_all(compiling) for one in able], most=LOOKS[-1])
        return best

    def final(self, winner: Combination) -> list[Tried]:
        """Torch's defaults, what is left of the winner within each level, its rivals and the winner, compared until
        decided. What is left is not compiled, which would take as long as all else.
        """
        near = [arm.combination for arm in self._about_as_fast(self._last_precision_stage)]
        rivals = [one for one in near if one.effect < winner.effect]
        less = [self.start, *(winner.within(level) for level in LEVELS), *rivals]
        arms = self._usable([DEFAULT, *(one.uncompiled for one in (*less, winner)), winner])
        ends = ENDS["final"]
        if len(arms) == 1:
            arms += self._usable(self._open())[:1]
            ends = self.used() + OPEN
        if len(arms) == 1:
            self.is_disturbed = bool(self._disturbed)
            tried = [arm for arm in self.tried if arm.combination == DEFAULT][-1:]
            return tried or self._compare("final", arms, most=STAGE_ROUNDS)
        found = self._compare("final", arms, most=MORE_LOOKS[-1], ends=ends)
        if _is_open(found) and any(len(arm.every) > len(arm.samples) for arm in found):
            self.is_disturbed = True
            _count_every_round(found)
        return found

    def _stage(
        self, name: str, start: Combination, others: Iterable[Combination], *, most: int = STAGE_ROUNDS
    ) -> Combination:
        arms = self._usable([start, *others])
        if len(arms) < 2:
            return start
        return choice.choice(self._compare(name, arms, most=most), self._default_peak_bytes()).combination

    def _precision_with_least_work(self, best: Combination) -> Combination:
        """Of the precisions that were about as fast as the best, that which leaves the GPU the least to do: where the
        host limits all, it is faster compiled. If times are unknown, a larger effect on results stands for less to do.
        """
        near = self._about_as_fast(self._last_precision_stage)
        if light := self._with_least_work(near, best):
            return light
        as_fast = [arm.combination for arm in near]
        return next((one for one in as_fast if best in as_fast and best.effect < one.effect), best)

    def _options_with_least_work(self, chosen: Combination) -> Combination:
        """Of the options that were about as fast as the chosen one, that which leaves the GPU the least to do. One that
        certainly spares the host stays: it does so in a compiled program, too.
        """
        near = self._about_as_fast("options")
        own = next((arm for arm in near if arm.combination == chosen), None)
        as_fast = [arm for arm in near if own and not choice.certainly_slower(arm, own)]
        return self._with_least_work(as_fast, chosen) or chosen

    def _with_least_work(self, arms: Sequence[Tried], best: Combination) -> Combination | None:
        """The best if it is one of the lightest without more memory, else the plainest of these; None if unknown."""
        memory = self._default_peak_bytes()
        able = [arm for arm in arms if arm.combination == best or not choice.uses_more_memory(arm, memory)]
        found = [arm.combination for arm in choice.with_least_work(able)]
        return best if best in found else min(found, key=choice.plainness, default=None)

    @property
    def _last_precision_stage(self) -> str:
        return "again" if any(arm.stage == "again" for arm in self.tried) else "precision"

    def _perhaps_disturbed(self, stage: str) -> list[Tried]:
        """The lightest arms that seemed far behind, perhaps disturbed, in a stage with too few rounds to say so."""
        arms, near = self._arms_of(stage), self._about_as_fast(stage)
        hurried = any(len(arm.samples) < FIRST_LOOK for arm in arms)
        return [arm for arm in choice.with_least_work(arms) if arm not in near] if hurried else []

    def _about_as_fast(self, stage: str) -> list[Tried]:
        arms = self._arms_of(stage)
        far = choice.far_behind(arms) if arms else []
        return [arm for arm in sorted(arms, key=lambda arm: -arm.rate) if arm not in far]

    def _arms_of(self, stage: str) -> list[Tried]:
        return [arm for arm in self.tried if arm.stage == stage and arm.samples]

    def _open(self) -> list[Combination]:
        """The combinations that may be faster than torch's defaults, which no stage took, the likeliest first.
        Numbers of workers are timed too few times to tell, as is what a stage had no time for; what it dropped is told.
        """
        found: list[tuple[float, Combination]] = []
        for stage in dict.fromkeys(arm.stage for arm in self.tried):
            arms = self._arms_of(stage)
            dropped = [] if stage in (LOADING, *self._disturbed) or not arms else choice.far_behind(arms)
            for arm in arms[1:] if arms and arms[0].combination == DEFAULT else ():
                compared = arm.against(arms[0])
                if compared.verdict == "undecided" if compared else arm not in dropped:
                    found.append((arm.rate / arms[0].rate, arm.combination))
        return [one for _, one in sorted(found, key=lambda one: -one[0])]

    def _usable(self, combinations: Iterable[Combination]) -> list[Combination]:
        return [one for one in dict.fromkeys(combinations) if not self.is_left_out(one)]

    def _default_peak_bytes(self) -> int | None:
        peaks = (arm.peak_bytes for arm in self.tried if arm.combination in (DEFAULT, self.start))
        return next((peak for peak in peaks if peak is not None), None)

    def _compare(
        self, stage: str, combinations: Sequence[Combination], *, most: int, ends: float | None = None
    ) -> list[Tried]:
        arms = ranked([Tried(combination=one, stage=stage) for one in combinations])
        self.tried += arms
        deadline, latest = ends or ENDS[stage], ENDS[stage] if ends else -math.inf
        rounds: Rounds[Tried] = Rounds(arms=arms, deadline=deadline, latest=latest, most=most, was_calm=self.was_calm)
        while arm := rounds.next(self.used()):
            rounds.push(arm.note(self.measure(arm.combination)))
            if stage != "final" and len(rounds.arms[0].samples) == FIRST_LOOK and not rounds.within_a_round:
                for one in choice.far_behind(rounds.arms):
                    rounds.drop(one)
                if len(rounds.arms) == 1:
                    break
        if stage != "final" and len(arms[0].samples) < min(FIRST_LOOK, len(arms[0].every)):
            self._disturbed.add(stage)
            _count_every_round(arms)
        return [arm for arm in rounds.arms if arm.every]


def _is_open(arms: Sequence[Tried]) -> bool:
    """Whether nothing certainly gains over torch's defaults, and something may."""
    found = [arm.against(arms[0]) for arm in arms[1:]]
    gains = any(one and one.verdict == "gain" for one in found)
    return not gains and any(one is None or one.verdict == "undecided" for one in found)


def _count_every_round(arms: Sequence[Tried]) -> None:
    for arm in arms:
        arm.samples = arm.every[: MORE_LOOKS[-1]]


def needed_steps(candidates: Candidates) -> int:
    """The fewest steps with which a search for these candidates, each of which gains, comes to a last comparison of
    `FEWEST_PAIRS` rounds; `STEPS` at the most. It is found by playing the search.
    """
    return next((most for most in range(30, STEPS, 10) if _played_rounds(candidates, most) >= FEWEST_PAIRS), STEPS)


def _played_rounds(candidates: Candidates, most: int) -> int:
    budget = Budget(clock=lambda: 0.0, most=most)

    def measure(combination: Combination) -> Block:
        budget.used += budget.steps(combination) + budget.settle(combination)
        budget.step_seconds[combination] = 1.0
        return Block(rate=1.1 ** len(combination.items))

    search = Search(measure=measure, used=lambda: budget.share)
    measure(DEFAULT)
    measure(DEFAULT)
    return min(len(arm.samples) for arm in search.final(search.best(candidates)))
