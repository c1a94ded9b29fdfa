"""What `gputune tune` chooses for scripts that nobody changed, beside other combinations of the same settings in
processes of their own: `python tests/gpu/tuned_scripts.py [SCRIPT...]`.

Each script is measured as a tune measures it, without guard and confirmation. Then processes of that script take turns
in short blocks: with torch's defaults, with the H200's flags, with its advice for the kind of network, with what was
chosen, and with other combinations: with all of them for `ALL`, for the others with the six of `NAMED`. As many work in
turn as the GPU's memory holds, the chosen one always among them. The fastest of so many is so by luck, too: where it is
not the chosen one, both are compared once more, in new processes.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import framework_scripts
import torch
import unchanged_scripts
from profile_choices import chosen
from turns import (
    BLOCK_SECONDS,
    CPUS,
    PROFILE,
    ROUNDS,
    as_of_here,
    command_line,
    compared,
    in_turn,
    python,
    under_apply,
    warm_up_at_once,
)

from gputune import facts
from gputune.facts import Facts
from gputune.host import Host
from gputune.knobs import Value
from gputune.measurement import Comparison
from gputune.profile import Profile, load, save
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.search.combination import DEFAULT, Combination
from gputune.trials.candidates import candidates
from gputune.trials.measuring import SearchResult, Wanted, measure
from gputune.trials.progress import TuneProgress
from gputune.trials.result import ranking, tuned
from gputune.trials.start import Start
from gputune.trials.tuning import UNGUARDED
from gputune_start import inherited

UNCHANGED = unchanged_scripts.SCRIPTS
FRAMEWORKS = ("hf_trainer", "lightning_fit", "accelerate_loop")
ALL = ("mlp", "decoder")
"""The scripts of which all combinations run: 16 each."""
FORMS: dict[str, Sequence[Value]] = {
    "matmul_precision": (None, "tf32"), "amp_dtype": (None, "bfloat16"), "fused_optimizer": (None, True),
    "compile": (None, True),
}  # fmt: skip
TF32, HALF = {"matmul_precision": "tf32"}, {"amp_dtype": "bfloat16"}
FUSED, COMPILED, LAST = {"fused_optimizer": True}, {"compile": True}, {"channels_last": True}
NAMED: Mapping[bool, Sequence[Mapping[str, Value]]] = {
    True: (
        TF32 | FUSED, HALF | FUSED, TF32 | FUSED | LAST, HALF | FUSED | LAST, HALF | FUSED | COMPILED,
        HALF | TF32 | FUSED | COMPILED | LAST,
    ),
    False: (
        TF32 | FUSED, HALF | FUSED, HALF | TF32 | FUSED, TF32 | FUSED | COMPILED, HALF | FUSED | COMPILED,
        HALF | TF32 | FUSED | COMPILED,
    ),
}  # fmt: skip
"""For every other script, by whether channels_last concerns it, chosen before it was tuned; what else it cannot have is
left out of each.
"""
STEPS = "1000000"
MOST_AT_ONCE, KEPT, CONTEXT_BYTES = 24, 1.3, 2 << 30
"""How many processes take turns at once; what one keeps of a GPU's memory, in times of what its tensors took at the
peak, and beside them.
"""
OTHERS = ("defaults", "flags", "family")
CLOSE = 0.97
"""The share of the best combination's speed that what is chosen reaches."""
HEADER = (
    "script", "chosen", *(f"ms/step, {one}" for one in (*OTHERS, "tuned", "best")), "best", "tuned, times defaults",
    "tuned, % of the best", "measuring, s",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Found:
    chosen: Combination
    best: Combination
    rates: dict[str, list[float]]
    """Steps/s in each round, by `OTHERS` and by combination."""
    to_defaults: Comparison
    to_best: Comparison
    measuring_seconds: float


@cache
def machine() -> Facts:
    """Read once: that takes several seconds."""
    return facts.read(Host())


@cache
def advice() -> Profile:
    return as_of_here(load(PROFILE))


def script(name: str) -> list[str]:
    """The command that trains without end."""
    if name in UNCHANGED:
        return python(f"unchanged/{name}.py")
    return [sys.executable, str(framework_scripts.SCRIPTS / f"{name}.py"), STEPS]


def blockwise(name: str) -> list[str]:
    """The command that trains in the blocks it is asked for."""
    return script(name) if name in UNCHANGED else framework_scripts.commands(name, Path())["alone"]


def started(name: str, words: Sequence[str]) -> Any:
    return unchanged_scripts.started(words) if name in UNCHANGED else framework_scripts.started(name, words)


def others_of(name: str, found: SearchResult) -> list[Combination]:
    able = {setting for setting in (*FORMS, "channels_last") if setting not in found.left}
    rows: Sequence[Mapping[str, Value]] = NAMED["channels_last" in able]
    if name in ALL:
        rows = [dict(zip(FORMS, values, strict=True)) for values in itertools.product(*FORMS.values())]
    kept = [{name: value for name, value in row.items() if value and name in able} for row in rows]
    return list(dict.fromkeys(Combination.of(one) for one in kept if one))


def measured(name: str, folder: Path, steps: int | None = None) -> SearchResult:
    """As `gputune tune` measures it. Raises RunFailed."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent / "training"), os.environ.get("PYTHONPATH")]))
    environ = {**inherited(), "STEPS": STEPS, "PYTHONPATH": path}
    with (folder / f"{name}.log").open("wb") as log:
        start = Start(command=script(name), environ=environ, folder=folder, log=log)
        able = candidates(machine(), "cuda" if machine().gpus else "cpu")
        wanted = Wanted(candidates=able, facts=machine(), steps=steps)
        return measure(start, wanted, host=Host(), told=TuneProgress(tell=lambda _: None))


def profile_with(found: SearchResult, combination: Combination) -> Profile:
    """The advice, with a program that has the combination."""
    base = advice()
    made = tuned(found, None, machine(), (base.fingerprint.gpu and "cuda:0") or "cpu", UNGUARDED).program
    values = combination.values
    program = replace(
        made, fingerprint=base.fingerprint, settings={name: chosen(value) for name, value in values.items()},
        by_numerics={"mixed": values} if values else {},
    )  # fmt: skip
    return replace(base, programs=(program,))


def compared_with_others(
    name: str, found: SearchResult, folder: Path, rounds: int = ROUNDS, block_seconds: float = BLOCK_SECONDS
) -> Found:
    ranked = ranking(found)
    chosen_one = ranked[0][0].combination if ranked else DEFAULT
    combinations = [one for one in dict.fromkeys([chosen_one, *others_of(name, found)]) if one != DEFAULT]
    save(advice(), folder / "profile.yaml")
    words = dict(zip(OTHERS, _others(name, folder / "profile.yaml"), strict=True))
    for number, one in enumerate(combinations):
        path = folder / f"{number}.yaml"
        save(profile_with(found, one), path)
        words[str(one)] = under_apply(path, blockwise(name))
    anchor = "defaults" if chosen_one == DEFAULT else str(chosen_one)
    rates: dict[str, list[float]] = {}
    cpus = framework_scripts.CPUS if name in FRAMEWORKS else CPUS
    by_key = {str(one): one for one in combinations}
    needs = {key: needed(found, by_key.get(key)) for key in words if key != anchor}
    left = room() - needed(found, chosen_one)
    with started(name, words[anchor]) as anchored:
        for group in groups(needs, left):
            with ExitStack() as stack:
                working = {key: stack.enter_context(started(name, words[key])) for key in group}
                everyone = {anchor: anchored, **working}
                warm_up_at_once([one for key, one in everyone.items() if key in by_key and compiles(by_key[key])])
                rates |= as_beside(anchor, rates, in_turn(everyone, rounds, block_seconds, cpus))
    best = max(combinations, key=lambda one: median(rates[str(one)]), default=DEFAULT)
    if median(rates["defaults"]) > median(rates.get(str(best), [0.0])):
        best = DEFAULT
    rates[str(DEFAULT)], words[str(DEFAULT)] = rates["defaults"], words["defaults"]
    pair = {str(one): words[str(one)] for one in (chosen_one, best)}
    once_more = worked_in_turn(name, pair, rounds, block_seconds, cpus) if best != chosen_one else rates
    return Found(
        chosen=chosen_one,
        best=best,
        rates=rates,
        to_defaults=compared(rates[str(chosen_one)], rates["defaults"]),
        to_best=compared(once_more[str(chosen_one)], once_more[str(best)]),
        measuring_seconds=found.seconds,
    )


def worked_in_turn(
    name: str, words: Mapping[str, Sequence[str]], rounds: int, block_seconds: float, cpus: int
) -> dict[str, list[float]]:
    with ExitStack() as stack:
        working = {key: stack.enter_context(started(name, one)) for key, one in words.items()}
        return in_turn(working, rounds, block_seconds, cpus)


def room() -> float:
    """The GPU's free bytes; on a CPU there is always room."""
    return torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else math.inf


def compiles(combination: Combination) -> bool:
    """Whether its first steps take long and bear company, as cuDNN's search does not."""
    return "compile" in combination.values and "cudnn_benchmark" not in combination.values


def needed(found: SearchResult, combination: Combination | None) -> float:
    """The bytes that a process keeps with the combination: by what the measuring run saw of it, or else of those with
    its form of mixed precision, or else (None is one of `OTHERS`) of any.
    """
    arms = [arm for arm in found.tried + found.arms if arm.peak_bytes]
    own = [arm for arm in arms if arm.combination == combination]
    half = combination and combination.values.get("amp_dtype")
    alike = [arm for arm in arms if combination and arm.combination.values.get("amp_dtype") == half]
    return KEPT * max((arm.peak_bytes or 0 for arm in own or alike or arms), default=0) + CONTEXT_BYTES


def groups(needs: Mapping[str, float], room: float) -> list[list[str]]:
    """The processes in groups that work at once, each in the first that has room for its bytes, or else in one of its
    own.
    """
    made: list[list[str]] = []
    for key, need in needs.items():
        for group in made:
            if len(group) < MOST_AT_ONCE - 1 and sum(needs[one] for one in group) + need <= room:
                group.append(key)
                break
        else:
            made.append([key])
    return made


def as_beside(
    anchor: str, before: Mapping[str, Sequence[float]], rates: Mapping[str, Sequence[float]]
) -> dict[str, list[float]]:
    """The rates of a later group as they would have been beside the first: each is as many times the anchor's of its
    round, whose own rates stay those of the first group.
    """
    kept = before.get(anchor, rates[anchor])
    return {
        key: [one / beside * first for one, beside, first in zip(own, rates[anchor], kept, strict=True)]
        for key, own in rates.items()
    }


def _others(name: str, profile: Path) -> Iterator[list[str]]:
    yield blockwise(name)
    yield under_apply(profile, blockwise(name))
    yield under_apply(profile, blockwise(name), "--numerics", "mixed")


def row(name: str, found: Found) -> str:
    times = [f"{1000 / median(found.rates[key]):.2f}" for key in (*OTHERS, str(found.chosen), str(found.best))]
    gain, share = found.to_defaults, found.to_best
    cells = [
        name, str(found.chosen), *times, str(found.best), f"{gain.ratio:.2f} ({gain.low:.2f} to {gain.high:.2f})",
        f"{100 * share.ratio:.1f} ({100 * share.low:.1f} to {100 * share.high:.1f})", f"{found.measuring_seconds:.0f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def mean(found: Sequence[Found], key: str) -> float:
    """The geometric mean of how many times the speed of torch's defaults; `key` is of `OTHERS`, or tuned."""
    rates = [(one.rates[str(one.chosen) if key == "tuned" else key], one.rates["defaults"]) for one in found]
    return float(math.prod(median(own) / median(plain) for own, plain in rates) ** (1 / len(rates)))


def in_a_row(names: Sequence[str], count: int, folder: Path) -> None:
    """What so many measuring runs of each script chose, its milliseconds, and the seconds of the run."""
    for name in names:
        for _ in range(count):
            found = measured(name, folder)
            best = ranking(found)[0][0] if ranking(found) else found.arms[0]
            print(f"{name}: {best.combination}, {1000 / best.rate:.3f} ms, {found.seconds:.0f} s", flush=True)


def main() -> None:
    parser = command_line(__doc__, (*UNCHANGED, *FRAMEWORKS))
    parser.add_argument("--again", type=int, default=0, metavar="N", help="measure each so often, and compare nothing")
    wanted, here, begun = parser.parse_args(), local_fingerprint(Host()), time.monotonic()
    names, found = wanted.scripts or [*UNCHANGED, *FRAMEWORKS], {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder) / "inductor")
        if wanted.again:
            in_a_row(names, wanted.again, Path(folder))
            return
        for name in names:
            own = Path(folder) / name
            own.mkdir()
            found[name] = compared_with_others(name, measured(name, own), own, wanted.rounds, wanted.block_seconds)
            print(f"{time.monotonic() - begun:.0f} s  {row(name, found[name])}", file=sys.stderr, flush=True)
    print(f"on {here.gpu or 'the CPU, where the ratios mean nothing'}, torch {here.torch}\n")
    print(f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|", *map(row, found, found.values()), sep="\n")
    means = [f"{key} {mean(list(found.values()), key):.2f}" for key in (*OTHERS[1:], "tuned")]
    print(f"\ngeometric mean of times the defaults: {', '.join(means)}")


if __name__ == "__main__":
    main()
