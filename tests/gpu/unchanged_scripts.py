"""What `gputune apply --numerics mixed` puts into training scripts that nobody changed, beside the same choices written
by hand: `python tests/gpu/unchanged_scripts.py [SCRIPT...]`.

Each script of `unchanged/` is trained by four processes at once, which take turns in short blocks:

- `defaults`: the script alone;
- `flags`: under `gputune apply`;
- `put in`: under `gputune apply --numerics mixed`;
- `by hand`: the script after the same choices were written into it by hand, with torch alone.

Before that all compiled variants of all scripts make a few steps at the same time, for the sake of inductor's cache:
compiling takes most of the time, and a GPU whose steps are timed must not have others beside them. For six scripts
that takes 100 GiB; with less, name them one by one.

Without a GPU it goes through the same motions on the CPU, in tiny sizes, where the ratios mean nothing.
"""

from __future__ import annotations

import json
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
from typing import Any

from profile_choices import PUT_IN, choices_of
from turns import (
    BLOCK_SECONDS,
    PROFILE,
    ROUNDS,
    Script,
    as_of_here,
    at_work,
    command_line,
    compared,
    first_steps,
    in_turn,
    peak,
    python,
    under_apply,
)

from gputune.host import Host
from gputune.measurement import Comparison
from gputune.profile import load, save
from gputune.runtime.local_fingerprint import local_fingerprint

SCRIPTS = ("mlp", "decoder", "convnet", "vision_transformer", "unet", "lstm")
FOLDER = "unchanged"
VARIANTS = ("defaults", "flags", "put in", "by hand")
HEADER = (
    "network", "put in", *(f"ms/step, {variant}" for variant in VARIANTS), "put in, times defaults",
    "put in, % of by hand (99 %)", "peak MiB of a step, " + " / ".join(VARIANTS), "of the process",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Found:
    """The lists have an entry for each of `VARIANTS`."""

    put_in: dict[str, Any]
    milliseconds: list[float]
    to_defaults: Comparison
    to_by_hand: Comparison
    step_peaks: list[float | None]
    """In MiB, when all is compiled and tuned; None without a GPU."""
    peaks: list[float | None]
    """Of the whole process."""


def measured(name: str, profile: Path, rounds: int = ROUNDS, block_seconds: float = BLOCK_SECONDS) -> Found:
    """Raises AssertionError where what was put in is not what the profile says."""
    choices = choices_of(load(profile), name)
    with ExitStack() as stack:
        working = {variant: stack.enter_context(started(words)) for variant, words in commands(name, profile).items()}
        flags = {variant: script.hello()["flags"] for variant, script in working.items()}
        assert flags["put in"] == flags["by hand"], f"{name}: other flags than by hand"
        rates = in_turn(working, rounds, block_seconds)
        found = put_in(working["put in"].end())
    wanted = {setting: choices[setting] for setting in PUT_IN if choices[setting]}
    on_gpu = local_fingerprint(Host()).gpu is not None
    assert found == wanted if on_gpu else found.items() <= wanted.items(), f"{name}: {found} instead of {wanted}"
    return Found(
        put_in=found,
        milliseconds=[1000 / median(rates[variant]) for variant in VARIANTS],
        to_defaults=compared(rates["put in"], rates["defaults"]),
        to_by_hand=compared(rates["put in"], rates["by hand"]),
        step_peaks=[peak(working[variant].answers[-rounds:]) for variant in VARIANTS],
        peaks=[peak(working[variant].answers) for variant in VARIANTS],
    )


def commands(name: str, profile: Path) -> dict[str, list[str]]:
    script, choices = python(f"{FOLDER}/{name}.py"), choices_of(load(profile), name)
    return {
        "defaults": script,
        "flags": under_apply(profile, script),
        "put in": under_apply(profile, script, "--numerics", "mixed"),
        "by hand": python("training/by_hand.py", name, json.dumps(choices)),
    }


def started(words: Sequence[str]) -> AbstractContextManager[Script]:
    return at_work(words, FOLDER, {**os.environ, "GPUTUNE_REPORT": "json"})


def put_in(stderr: str) -> dict[str, Any]:
    """What the process and its children say at their ends was put in, of all that is not torch's default."""
    reports = [json.loads(line)["gputune"] for line in stderr.splitlines() if line.startswith('{"gputune"')]
    rows = [row for report in reports for row in report["settings"]]
    applied = {row["setting"]: row["after"] for row in rows if row["status"] == "applied" and row["after"]}
    return {setting: value for setting, value in applied.items() if setting in PUT_IN}


def compile_ahead(names: Sequence[str], profile: Path) -> None:
    compiled = [name for name in names if choices_of(load(profile), name)["compile"]]
    words = [commands(name, profile)[variant] for name in compiled for variant in ("put in", "by hand")]
    first_steps([partial(started, one) for one in words])


def row(name: str, found: Found) -> str:
    to_defaults, to_by_hand = found.to_defaults, found.to_by_hand
    cells = [
        name,
        ", ".join(setting if value is True else str(value) for setting, value in found.put_in.items()) or "nothing",
        *(f"{one:.2f}" for one in found.milliseconds),
        f"{to_defaults.ratio:.2f} ({to_defaults.low:.2f} to {to_defaults.high:.2f})",
        f"{100 * to_by_hand.ratio:.1f} ({100 * to_by_hand.low:.1f} to {100 * to_by_hand.high:.1f})",
        *(
            " / ".join("-" if one is None else f"{one:.0f}" for one in peaks)
            for peaks in (found.step_peaks, found.peaks)
        ),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = command_line(__doc__, SCRIPTS)
    parser.add_argument("--profile", type=Path, help="of this machine; by default the H200's, as if of this machine")
    wanted, here = parser.parse_args(), local_fingerprint(Host())
    names, rows, start = wanted.scripts or list(SCRIPTS), [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder) / "inductor")
        profile = Path(folder) / "profile.yaml"
        given = load(wanted.profile) if wanted.profile else as_of_here(load(PROFILE))
        save(given, profile)
        compile_ahead(names, profile)
        for name in names:
            rows.append(row(name, measured(name, profile, wanted.rounds, wanted.block_seconds)))
            print(f"{time.monotonic() - start:.0f} s  {rows[-1]}", file=sys.stderr, flush=True)
    print(f"on {here.gpu or 'the CPU, where the ratios mean nothing'}, torch {here.torch}\n")
    print(f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|", *rows, sep="\n")


if __name__ == "__main__":
    main()
