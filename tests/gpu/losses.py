"""Whether a script that nobody changed still learns the same under `gputune apply`: `python tests/gpu/losses.py
[SCRIPT...]`.

Each script of `unchanged/` trains from several seeds, alone and under `gputune apply --numerics mixed`. The final loss
of a seed may differ by twice the standard deviation between the seeds of the script alone, which is the rule of
gputune's own accuracy guard. From one seed it trains once more alone and once under `--numerics exact`: each loss must
be the same bit for bit, if the script repeats its own.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev

from turns import at_work, python, under_apply, write_profile

STEPS = 200
SEEDS = 5
LAST = 20
"""The final loss is the mean over this many last steps, since each step has another batch."""
AT_ONCE = 4
"""So many trainings share the GPU."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    alone: list[list[float]]
    put_in: list[list[float]]
    again: list[float]
    exact: list[float]

    @property
    def farthest(self) -> float:
        """How far apart the final losses of one seed are at most, alone and put in."""
        return max(abs(final(one) - final(other)) for one, other in zip(self.alone, self.put_in, strict=True))

    @property
    def allowed(self) -> float:
        return 2 * stdev(map(final, self.alone))

    @property
    def repeats(self) -> bool:
        return self.again == self.alone[0]

    @property
    def exact_is_same(self) -> bool:
        return self.exact == self.alone[0]


def losses(name: str, steps: int = STEPS, seeds: int = SEEDS) -> Losses:
    script = python(f"unchanged/{name}.py")
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile.yaml"
        write_profile(profile)
        mixed, exact = (under_apply(profile, script, "--numerics", level) for level in ("mixed", "exact"))
        runs = [(words, seed) for words in (script, mixed) for seed in range(seeds)] + [(script, 0), (exact, 0)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(lambda run: trained(*run, steps), runs))
    return Losses(alone=found[:seeds], put_in=found[seeds : 2 * seeds], again=found[-2], exact=found[-1])


def trained(words: Sequence[str], seed: int, steps: int) -> list[float]:
    with at_work(words, "unchanged", {**os.environ, "SEED": str(seed)}) as script:
        return [float(loss) for loss in script.trained(steps)["losses"]]


def final(each: Sequence[float]) -> float:
    return math.fsum(each[-LAST:]) / LAST


def row(name: str, found: Losses) -> str:
    cells = [
        name,
        f"{found.alone[0][0]:.4f}",
        *(" ".join(f"{final(each):.4f}" for each in one) for one in (found.alone, found.put_in)),
        f"{found.farthest:.4f} of {found.allowed:.4f}",
        ("the same" if found.exact_is_same else "others") if found.repeats else "does not repeat its own",
    ]
    return f"| {' | '.join(cells)} |"


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", default=["decoder", "convnet"])
    parser.add_argument("--steps", type=int, default=STEPS, help=f"{STEPS} by default, {LAST} at least")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"{SEEDS} by default, 2 at least")
    return parser.parse_args()


if __name__ == "__main__":
    wanted = asked()
    header = "network", "first loss", "final, alone", "final, put in", "farthest apart", "losses under exact"
    print(f"| {' | '.join(header)} |", "|---" * len(header) + "|", sep="\n")
    for script_name in wanted.scripts:
        print(row(script_name, losses(script_name, wanted.steps, wanted.seeds)), flush=True)
