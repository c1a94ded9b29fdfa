"""Plain training scripts under a profile, beside the same scripts tuned by hand: `python tests/gpu/training_scripts.py
[NETWORK...]`.

Each network is trained by five processes at once, which take turns in short blocks:

- `defaults`: the script alone;
- `plain`: the script, unchanged, under `gputune apply`;
- `by_hand`: the script after the same flags written by hand;
- `tuning`: the script with the lines of a Tuning added;
- `best`: the best combination that the profile knows of, written by hand with torch alone.

Without a GPU it goes through the same motions on the CPU, in the CPU sizes of the networks, where the ratios mean
nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from turns import BLOCK_SECONDS, PROFILE, ROUNDS, at_work, compared, in_turn, python, under_apply, write_profile

from gputune.benches._networks import NETWORKS
from gputune.host import Host
from gputune.measurement import FEWEST_PAIRS, Comparison
from gputune.profile import load
from gputune.runtime.local_fingerprint import local_fingerprint

FLAGS = {"matmul_precision": "tf32", "cudnn_benchmark": True}
COMPARED = (("plain", "by_hand"), ("tuning", "best"), ("plain", "defaults"), ("tuning", "defaults"))


def measured(name: str, rounds: int = ROUNDS, block_seconds: float = BLOCK_SECONDS) -> dict[str, Any]:
    """What became of one network: a Comparison for each pair of `COMPARED`, and the steps per second of each variant.

    Raises AssertionError where the variants do not do what they are to be compared for.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "profile.yaml"
        write_profile(path)
        working = {variant: at_work(words, "training") for variant, words in commands(name, path).items()}
        scripts = {variant: stack.enter_context(script) for variant, script in working.items()}
        said = {variant: script.hello() for variant, script in scripts.items()}
        verify(name, said)
        rates = in_turn(scripts, rounds, block_seconds)
    return {
        **{f"{one}/{other}": compared(rates[one], rates[other]) for one, other in COMPARED},
        "steps per second": {variant: median(each) for variant, each in rates.items()},
        "flags": {variant: one["flags"] for variant, one in said.items()},
        "seconds": time.monotonic() - started,
    }


def commands(name: str, profile: Path) -> dict[str, list[str]]:
    plain = python("training/plain.py", name)
    return {
        "defaults": plain,
        "plain": under_apply(profile, plain),
        "by_hand": python("training/by_hand.py", name, json.dumps(FLAGS)),
        "tuning": python("training/tuning.py", name, str(profile)),
        "best": python("training/by_hand.py", name, json.dumps(FLAGS | of_family(name))),
    }


def of_family(name: str) -> dict[str, Any]:
    return {setting: choice.value for setting, choice in load(PROFILE).families[name].items()}


def verify(name: str, said: Mapping[str, Mapping[str, Any]]) -> None:
    """Assert that the variants train the reference network, under the flags and with the options to be compared."""
    import torch

    network = NETWORKS[name]
    size = network.cuda if torch.cuda.is_available() else network.cpu
    with torch.device("meta"):
        parameters = sum(one.numel() for one in network.build(size).parameters())
    inputs, _ = network.data(size, "cpu", torch.Generator())
    assert said["plain"]["parameters"] == parameters, f"{name}: another network than the reference"
    assert said["plain"]["inputs"] == list(inputs.shape), f"{name}: another batch than the reference's"
    by_hand = said["by_hand"]["flags"]
    for variant in ("plain", "tuning", "best"):
        assert said[variant]["flags"] == by_hand, f"{name}, {variant}: other flags than by hand"
    assert said["defaults"]["flags"] != by_hand, f"{name}: the profile changes no flag"
    assert said["tuning"]["family"] == name, f"{name}: taken for {said['tuning']['family']}"
    given = {setting: said["tuning"]["options"][setting] for setting in of_family(name)}
    assert given == of_family(name), f"{name}: the Tuning gave {given}"


def line(name: str, found: Mapping[str, Any]) -> str:
    ratios = [
        f"{pair} {one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
        for pair, one in found.items()
        if isinstance(one, Comparison)
    ]
    return f"{name:<12} {'   '.join(ratios)}   {found['seconds']:.0f} s"


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS} by default, {FEWEST_PAIRS} at least")
    parser.add_argument("--block-seconds", type=float, default=BLOCK_SECONDS)
    return parser.parse_args()


if __name__ == "__main__":
    wanted = asked()
    here = local_fingerprint(Host())
    print(f"on {here.gpu or 'the CPU, where the ratios mean nothing'}, torch {here.torch}")
    for network in wanted.networks or NETWORKS:
        print(line(network, measured(network, wanted.rounds, wanted.block_seconds)), flush=True)
