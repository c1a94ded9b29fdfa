"""What `gputune apply --numerics mixed` puts into scripts of transformers' Trainer, Lightning, Accelerate and torchrun,
beside the same choices in each framework's own words: `python tests/gpu/framework_scripts.py [SCRIPT...]`.

Each script of `tests/frameworks/scripts/` trains a real model with random weights in three processes at once (torchrun:
jobs of two GPUs), which take turns in short blocks: the script alone, put into, and with `--by-hand`. Before that all
of them make a few steps at the same time, for the sake of inductor's cache.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from turns import (
    BLOCK_SECONDS,
    HERE,
    ROUNDS,
    Script,
    at_work,
    command_line,
    compared,
    first_steps,
    in_turn,
    peak,
    python,
    under_apply,
    write_profile,
)

from gputune.measurement import Comparison

SCRIPTS = HERE.parent / "frameworks" / "scripts"
NAMES = ("hf_trainer", "lightning_fit", "accelerate_loop", "ddp_loop")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
MANY_STEPS = "100000"
CPUS = 4
"""Beside a step's own two threads there is one that pins batches."""
SAID = "gputune: "
VARIANTS = ("alone", "put in", "by hand")
HEADER = (
    "script", *(f"ms/step, {variant}" for variant in VARIANTS), "put in, times alone", "put in, % of by hand (99 %)",
    "peak MiB of a step, " + " / ".join(VARIANTS), "said",
)  # fmt: skip


def commands(name: str, profile: Path) -> dict[str, list[str]]:
    interpreter, *stepwise = python("training/stepwise.py", str(SCRIPTS / f"{name}.py"), MANY_STEPS)
    script = [interpreter, *(TORCHRUN if name == "ddp_loop" else ()), *stepwise]
    return {
        "alone": script,
        "put in": under_apply(profile, script, "--numerics", "mixed"),
        "by hand": [*script, "--by-hand"],
    }


def started(name: str, words: Sequence[str]) -> AbstractContextManager[Script]:
    """With one GPU to see, but for a job: transformers' Trainer would share a batch out between all."""
    one = (
        {}
        if name == "ddp_loop"
        else {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]}
    )
    return at_work(words, "../frameworks/scripts", {**os.environ, **one})


def compile_ahead(names: Sequence[str], profile: Path) -> None:
    runs = [(name, commands(name, profile)[variant]) for name in names for variant in VARIANTS[1:]]
    first_steps([partial(started, *run) for run in runs])


@dataclass(frozen=True, kw_only=True)
class Found:
    """The lists have an entry for each of `VARIANTS`."""

    milliseconds: list[float]
    to_alone: Comparison
    to_by_hand: Comparison
    step_peaks: list[float | None]
    """In MiB, when all is compiled and tuned; None without a GPU."""
    said: list[str]
    """gputune's lines."""


def measured(name: str, profile: Path, rounds: int = ROUNDS, block_seconds: float = BLOCK_SECONDS) -> Found:
    with ExitStack() as stack:
        words = commands(name, profile)
        working = {variant: stack.enter_context(started(name, words[variant])) for variant in VARIANTS}
        rates = in_turn(working, rounds, block_seconds, CPUS)
        stderr = working["put in"].end()
    return Found(
        milliseconds=[1000 / median(rates[variant]) for variant in VARIANTS],
        to_alone=compared(rates["put in"], rates["alone"]),
        to_by_hand=compared(rates["put in"], rates["by hand"]),
        step_peaks=[peak(working[variant].answers[-rounds:]) for variant in VARIANTS],
        said=[line[line.index(SAID) :] for line in stderr.splitlines() if SAID in line],
    )


def row(name: str, found: Found) -> str:
    to_alone, to_by_hand = found.to_alone, found.to_by_hand
    cells = [
        name,
        *(f"{one:.2f}" for one in found.milliseconds),
        f"{to_alone.ratio:.2f} ({to_alone.low:.2f} to {to_alone.high:.2f})",
        f"{100 * to_by_hand.ratio:.1f} ({100 * to_by_hand.low:.1f} to {100 * to_by_hand.high:.1f})",
        " / ".join("-" if one is None else f"{one:.0f}" for one in found.step_peaks),
        "; ".join(found.said),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    wanted = command_line(__doc__, NAMES).parse_args()
    names, rows, start = wanted.scripts or list(NAMES), [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder) / "inductor")
        profile = Path(folder) / "profile.yaml"
        write_profile(profile)
        compile_ahead(names, profile)
        for name in names:
            rows.append(row(name, measured(name, profile, wanted.rounds, wanted.block_seconds)))
            print(f"{time.monotonic() - start:.0f} s  {rows[-1]}", file=sys.stderr, flush=True)
    print(f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|", *rows, sep="\n")


if __name__ == "__main__":
    main()
